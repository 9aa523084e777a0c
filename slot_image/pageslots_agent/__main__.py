"""`python -m pageslots_agent`: one slot's agent."""

from pageslots_agent.main import main

raise SystemExit(main())
