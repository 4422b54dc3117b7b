"""`scripts/inventory compare` of schemas and options: only words may differ, and names by the table."""

from typing import Any

from scripts.inventory_parts.comparing import options, schema
from scripts.inventory_parts.documents import called_as_now, differences
from scripts.inventory_parts.findings import Findings
from scripts.inventory_parts.renames import Renames

RENAMES = Renames(
    names={
        "a:at": "b:settings_at",
        "a:RawOld": "b:RawNew",
        "topology: home": "topology: brokers",
        "status: kind": "status: sort",
    },
    words={"beat_s": "heartbeat_s", "Tell": "Notify", "a": "b", "b": "c"},
)


def compared_schemas(old: Any, new: Any) -> Findings:
    found = Findings()
    schema(old, new, RENAMES, found)
    return found


def argument(name: str, metavar: str | None, **other: Any) -> dict[str, Any]:
    return {"name": [name], "kind": "TyperArgument", "metavar": metavar, "help": "x", **other}


def compared_options(old: list[Any], new: list[Any]) -> Findings:
    found = Findings()
    before, after = ({"testbed": {"help": "", "parameters": each}} for each in (old, new))
    options(before, after, RENAMES, found)
    return found


def test_classes_and_keys_of_the_topology_have_the_names_of_the_table() -> None:
    old = {
        "$defs": {"RawOld": {"properties": {"home": {}, "beat_s": {}, "at": {}, "kind": {}}}},
        "properties": {"node": {"$ref": "#/$defs/RawOld"}},
        "required": ["home"],
    }
    new = {
        "$defs": {
            "RawNew": {"properties": {"brokers": {}, "heartbeat_s": {}, "at": {}, "kind": {}}}
        },
        "properties": {"node": {"$ref": "#/$defs/RawNew"}},
        "required": ["brokers"],
    }
    assert compared_schemas(old, new).are_none


def test_a_key_that_no_row_renames_is_lost() -> None:
    found = compared_schemas({"properties": {"kind": {}}}, {"properties": {"sort": {}}})
    assert found.losses == ["/properties/kind is gone"]
    assert found.notes == ["/properties/sort is new"]


def test_other_descriptions_are_one_note_but_a_missing_one_is_lost() -> None:
    old = {each: {"description": "old", "type": "string"} for each in "xyz"}
    new = {each: {"description": "new", "type": "string"} for each in "xy"} | {
        "z": {"type": "string"}
    }
    found = compared_schemas(old, new)
    assert found.losses == ["/z/description is gone"]
    assert found.notes == ["2 descriptions have other words"]


def test_a_property_that_is_called_description_is_no_text() -> None:
    old = {"properties": {"description": {"type": "string"}}}
    found = compared_schemas(old, {"properties": {"description": {"type": "integer"}}})
    assert found.losses == ["/properties/description/type: 'string' -> 'integer'"]


def test_every_change_of_name_in_a_chain_is_followed() -> None:
    assert called_as_now({"a": 1, "b": 2}, {"b": 1, "c": 2}, RENAMES) == {"b": 1, "c": 2}


def test_a_key_stays_where_the_new_document_has_it_beside_its_new_name() -> None:
    both = {"beat_s": 1, "heartbeat_s": 2}
    assert called_as_now(both, both, RENAMES) == both


def test_words_inside_a_key_or_text_are_renamed_only_where_the_new_document_does() -> None:
    old = {"Tell go": "Tell", "other": "Tell"}
    assert called_as_now(old, {"Notify go": "Notify", "other": "x"}, RENAMES) == {
        "Notify go": "Notify",
        "other": "Tell",
    }


def test_a_number_of_another_type_differs() -> None:
    assert [each.text for each in differences({"a": 1}, {"a": True})] == ["/a: 1 -> True"]


def test_an_argument_may_have_another_name_if_a_user_sees_the_same() -> None:
    found = compared_options([argument("words", "NODE")], [argument("arguments", "NODE")])
    assert found.losses == []
    assert found.notes == ["1 arguments have another name inside, and the same one for a user"]


def test_an_argument_without_a_word_of_its_own_shows_its_name() -> None:
    found = compared_options([argument("words", None)], [argument("arguments", None)])
    assert found.losses == ["/testbed/parameters/argument 1 WORDS is gone"]


def test_help_is_a_note_and_all_else_of_an_option_is_not() -> None:
    option = {"name": ["--to", "-t"], "kind": "TyperOption", "metavar": None, "help": "x"}
    found = compared_options(
        [{**option, "required": True}], [{**option, "help": "y", "required": False}]
    )
    assert found.losses == ["/testbed/parameters/--to/-t/required: True -> False"]
    assert found.notes == ["1 help texts have other words"]
