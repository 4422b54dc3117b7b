"""A dissector for Wireshark, in Lua, made from the field table of `nodes.protocol.wire` and `nodes.protocol.labels`.

A WebSocket frame on a broker's port is a chunk: a whole message, a label and a whole message, several behind their
lengths, or a piece. The header stands in a message's first piece, which no label marks: of pieces only
label, level and bytes are shown.
"""

from nodes.protocol import wire
from nodes.protocol.labels import LENGTH_BYTES, LEVELLED, DmpqLabel, Form

_TYPES = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64"}
_HEXADECIMAL = frozenset({"flags", "message_id"})
_WHOLE_LETTERS = (DmpqLabel.URGENT, DmpqLabel.WHOLE)
_PIECE_LETTERS = (DmpqLabel.PIECE, DmpqLabel.LAST, DmpqLabel.URGENT_PIECE, DmpqLabel.URGENT_LAST)

_PROGRAM = """\
-- Wireshark: put this file into the folder of personal Lua plugins (Help, About, Folders), or tshark -X lua_script:FILE
local testbed = Proto("testbed", "testbed message")
local kinds = {{{kinds}}}
local letters = {{{letters}}}
local forms = {{{forms}}}
local f = testbed.fields
{fields}
f.topic = ProtoField.string("testbed.topic", "topic")
f.coordinate = ProtoField.uint32("testbed.coordinate", "coordinate of its place")
f.routing = ProtoField.bytes("testbed.routing", "routing section")
f.payload = ProtoField.bytes("testbed.payload", "payload")
f.label = ProtoField.uint8("testbed.label", "label", base.HEX)
f.level = ProtoField.uint8("testbed.level", "level of the piece")
f.piece = ProtoField.bytes("testbed.piece", "piece of a message")
f.cut = ProtoField.bytes("testbed.cut", "not whole")

local message

-- Whole messages, each behind its length in {length_bytes} bytes.
local function several(buffer, pinfo, tree)
  local at = 0
  while at + {length_bytes} <= buffer:len() do
    local length = buffer(at, {length_bytes}):uint()
    at = at + {length_bytes}
    if length == 0 or at + length > buffer:len() then break end
    message(buffer(at, length):tvb(), pinfo, tree)
    at = at + length
  end
  if at < buffer:len() then tree:add(f.cut, buffer(at)) end
end

message = function(buffer, pinfo, tree)
  if buffer:len() < {header} or buffer(0, 1):uint() ~= {version} then
    tree:add(f.cut, buffer())
    return
  end
  local kind, priority = buffer({at_kind}, 1):uint(), buffer({at_priority}, 1):uint()
  local name = kinds[kind] or "kind " .. kind
  local branch = tree:add(testbed, buffer(), "testbed " .. name .. ", level " .. priority)
{adding}
  local at, flags = {header}, buffer({at_flags}, 2):uint()
  local function take(length, field)
    if at + length > buffer:len() then
      branch:add(f.cut, buffer(math.min(at, buffer:len() - 1)))
      return false
    end
    if field and length > 0 then branch:add(field, buffer(at, length)) end
    at = at + length
    return true
  end
  if not take(buffer({at_topic_length}, 2):uint(), f.topic) then return end
  if math.floor(flags / {placed}) % 2 == 1 then
    if not take(1) then return end
    for _ = 1, buffer(at - 1, 1):uint() do
      if not take({coordinate}, f.coordinate) then return end
    end
  end
  if math.floor(flags / {routed}) % 2 == 1 then
    if not take({routing_length}) then return end
    if not take(buffer(at - {routing_length}, {routing_length}):uint(), f.routing) then return end
  end
  pinfo.cols.info:append(" [" .. name .. ", level " .. priority .. "]")
  if at == buffer:len() then return end
  if kind == {joined} then several(buffer(at):tvb(), pinfo, branch) else branch:add(f.payload, buffer(at)) end
end

function testbed.dissector(buffer, pinfo, tree)
  if buffer:len() == 0 then return end
  pinfo.cols.protocol = "testbed"
  local label = buffer(0, 1):uint()
  if label == {version} or buffer:len() == 1 then
    message(buffer, pinfo, tree)
    return
  end
  local form
  if label >= {levelled} then form = math.floor(label / 8) % 4 else form = letters[label] end
  local rest = buffer(1):tvb()
  local branch = tree:add(f.label, buffer(0, 1)):append_text(", " .. (forms[form] or "unknown"))
  if label >= {levelled} then branch:append_text(" of level " .. label % 8) end
  if form == {whole} then message(rest, pinfo, tree)
  elseif form == {several} then several(rest, pinfo, tree)
  elseif form then
    if label >= {levelled} then tree:add(f.level, buffer(0, 1), label % 8) end
    tree:add(f.piece, rest())
    pinfo.cols.info:append(" [" .. forms[form] .. "]")
  else tree:add(f.cut, buffer()) end
end

DissectorTable.get("tcp.port"):add({port}, Dissector.get("http-over-tcp"))
DissectorTable.get("ws.port"):add({port}, testbed)
"""


def dissector(port: int) -> str:
    """The program, for brokers on this TCP port."""
    offsets = _offsets()
    return _PROGRAM.format(
        kinds=", ".join(f'[{int(kind)}] = "{kind.name}"' for kind in wire.Kind),
        letters=", ".join(_letters()),
        forms=", ".join(f'[{int(form)}] = "{form.name.lower()}"' for form in Form),
        fields="\n".join(_declared(field) for field in wire.FIELDS),
        adding="\n".join(
            f"  branch:add(f.{field.name}, buffer({offsets[field.name]}, {field.size}))"
            for field in wire.FIELDS
        ),
        header=wire.HEADER_SIZE,
        version=wire.VERSION,
        at_kind=offsets["kind"],
        at_priority=offsets["priority"],
        at_flags=offsets["flags"],
        at_topic_length=offsets["topic_length"],
        placed=wire.PLACED,
        routed=wire.ROUTED,
        coordinate=wire.COORDINATE_BYTES,
        routing_length=wire.ROUTING_LENGTH.size,
        joined=int(wire.Kind.JOINED),
        levelled=LEVELLED,
        length_bytes=LENGTH_BYTES,
        whole=int(Form.WHOLE),
        several=int(Form.SEVERAL),
        port=port,
    )


def _offsets() -> dict[str, int]:
    found, at = {}, 0
    for field in wire.FIELDS:
        found[field.name] = at
        at += field.size
    return found


def _letters() -> list[str]:
    """The labels of dmpq-pc, as the forms of ours."""
    whole = [(letter, Form.WHOLE) for letter in _WHOLE_LETTERS]
    last = (DmpqLabel.LAST, DmpqLabel.URGENT_LAST)
    pieces = [(one, Form.LAST if one in last else Form.PIECE) for one in _PIECE_LETTERS]
    return [f"[{int(letter)}] = {int(form)}" for letter, form in whole + pieces]


def _declared(field: wire.Field) -> str:
    shown = "base.HEX" if field.name in _HEXADECIMAL else "base.DEC"
    names = "kinds" if field.name == "kind" else "nil"
    made = f'ProtoField.{_TYPES[field.size]}("testbed.{field.name}", "{field.name}", {shown}, {names}, nil'
    return f'f.{field.name} = {made}, "{field.meaning}")'
