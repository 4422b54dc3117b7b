"""What streams and datagrams carry: WebSocket frames, our messages and MQTT packets; and what they cost on a link."""
