"""What a run folder says beside its captures: manifest, logs, clocks, machine; and what an earlier analysis wrote."""
