"""The report's sections: each module has the view and the chart of one topic."""
