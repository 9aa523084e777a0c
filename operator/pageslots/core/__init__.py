"""The rules that decide: pure functions over frozen facts, and the index that makes them cheap.

`plan(index, now)` says what should happen; `Index` holds the facts and what follows from them.
"""
