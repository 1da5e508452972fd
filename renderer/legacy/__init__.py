"""Legacy equivalence: recordings of old launchers, and the proof that an experiment equals one."""
