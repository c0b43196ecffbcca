"""The engines: one folder for each orchestrator, all behind `hyperpod_jlab.engines.protocol.Orchestrator`."""
