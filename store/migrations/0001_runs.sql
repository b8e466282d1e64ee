-- SPDX-License-Identifier: Apache-2.0
-- One row per run, and what is known of it as a whole. Rows of its records are in tables that store/tables.py derives.

CREATE TABLE runs (
    run_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, -- new at each ingestion, so it grows with time
    experiment text NOT NULL,
    run text NOT NULL,
    status text NOT NULL,
    error text NOT NULL,
    host text NOT NULL,
    kernel text NOT NULL, -- release
    build text NOT NULL, -- key of the kernel build
    cca text NOT NULL, -- algorithms of its flows, comma-separated
    seed bigint,
    verdict text NOT NULL, -- valid, suspect, invalid; empty where the run gave no result
    reasons text NOT NULL,
    label text NOT NULL, -- parameters and seed in one line, for legends
    title text NOT NULL,
    question text NOT NULL,
    params jsonb NOT NULL,
    metrics jsonb NOT NULL,
    spec jsonb NOT NULL,
    environment jsonb NOT NULL,
    started_at timestamptz NOT NULL, -- on the run's own clock
    ended_at timestamptz NOT NULL,
    made_at timestamptz, -- on the clock of the machine that ran it
    duration_s double precision NOT NULL,
    wall_s double precision,
    finest_ms integer NOT NULL, -- narrowest bucket in flow_points and queue_points
    digest text NOT NULL, -- SHA-256 over run.json and the records: equal digest, nothing to do
    ingested_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (experiment, run)
);
CREATE INDEX runs_started ON runs (started_at);

CREATE TABLE run_params (
    run_id bigint NOT NULL REFERENCES runs ON DELETE CASCADE,
    name text NOT NULL,
    value text NOT NULL, -- as the experiment file has it
    number double precision, -- in base units (bit/s, s, bytes, packets), NULL for a word
    PRIMARY KEY (run_id, name)
);

CREATE TABLE run_metrics (
    run_id bigint NOT NULL REFERENCES runs ON DELETE CASCADE,
    name text NOT NULL, -- as in `./warpbed list metrics`; parts are NAME.PART
    unit text NOT NULL,
    value double precision NOT NULL,
    PRIMARY KEY (run_id, name)
);
CREATE INDEX run_metrics_name ON run_metrics (name, run_id);

CREATE TABLE run_reasons (
    run_id bigint NOT NULL REFERENCES runs ON DELETE CASCADE,
    number integer NOT NULL,
    rule text NOT NULL,
    severity text NOT NULL,
    message text NOT NULL,
    PRIMARY KEY (run_id, number)
);

-- Two-sided 95 % quantiles of Student's t by degrees of freedom; migrate.py fills it from analysis.statistics.
CREATE TABLE student_t (
    df integer PRIMARY KEY,
    t975 double precision NOT NULL
);
