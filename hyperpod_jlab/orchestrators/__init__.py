"""The engines: one folder for each orchestrator, all behind `hyperpod_jlab.orchestrators.protocol.Orchestrator`."""
