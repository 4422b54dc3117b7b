"""The interface of a backend, and what several backends share."""
