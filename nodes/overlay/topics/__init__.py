"""Topic-based publish/subscribe between brokers, in several methods with one interface (`base.TopicNode`).

`nodes.overlay.methods` lists them. Methods on topic keys choose their parts (`method.SkipGraphMethod`): `membership`,
`stop_go`, `forwarding`, `participants`.
"""
