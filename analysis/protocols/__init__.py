"""Reads what streams and datagrams carry: WebSocket frames, our messages and MQTT packets; and counts their cost."""
