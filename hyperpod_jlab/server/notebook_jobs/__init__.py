"""Notebook jobs: jupyter-scheduler runs notebooks on our clusters, on demand and by schedule.

jupyter-scheduler (an optional package) keeps its pages, its REST API, its database and its schedules. These classes plug into it: the
environments of a job are our clusters, a job is a run with the job's id, and the job's files are the run's notebook and files.
"""
