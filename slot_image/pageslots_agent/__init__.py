"""The slot agent: the program behind one page slot; it drives Chromium and answers HTTP."""
