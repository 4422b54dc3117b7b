"""A small lab that collects: six sites, each a router with a broker and a gauge, and one office."""

TOPIC = "water"
PERIODS = (1, 1, 2, 2, 3, 3)  # seconds, site by site
BEGIN_S, DURATION_S = 10, 38
WAIT_MS = 600
READINGS = sum(-(-(DURATION_S - BEGIN_S) // period) for period in PERIODS)
LEARNT_S = BEGIN_S + 20  # three readings of each sensor, and time to change keys and links


def collection_file(name: str, way: str = "push-descending") -> str:
    """The topology file, with an alert in the middle of the scenario."""
    events = "\n".join(
        f"    - {{at: {BEGIN_S}s, publish: {{from: 'gauges[{site}]', topic: {TOPIC}, size: 4B, period: {period}s}}}}"
        for site, period in enumerate(PERIODS)
    )
    return f"""
name: {name}
seed: 5
groups:
  lines: {{kind: router, count: {len(PERIODS)}, link: 3g-384k}}
  brokers: {{kind: broker, count: {len(PERIODS)}, router: "lines[*]"}}
  gauges: {{kind: sensor, count: {len(PERIODS)}, router: "lines[*]"}}
nodes:
  center: {{kind: broker, link: lan}}
  office: {{kind: subscriber, link: lan, topics: [{TOPIC}], brokers: center}}
overlay: {{method: collection, way: {way}, wait_s: {WAIT_MS / 1000:g}}}
scenario:
  duration: {DURATION_S}s
  settle: 15s
  events:
{events}
    - {{at: 25s, publish: {{from: 'gauges[0]', topic: {TOPIC}, priority: 5, size: 100B}}}}
"""
