-- SPDX-License-Identifier: Apache-2.0
-- What the theses' entries came to when `./warpbed reproduce --to-store` was last asked; no run needs to be in the store for it.

CREATE TABLE outcomes (
    entry text PRIMARY KEY, -- as in experiments/<thesis>/catalogue.yaml
    thesis text NOT NULL,
    number integer NOT NULL, -- its place in the catalogue
    title text NOT NULL,
    place text NOT NULL, -- section and page of the thesis
    kind text NOT NULL, -- table, figure, claim
    outcome text NOT NULL, -- analysis.reproduction.outcomes: Judged.word
    reason text NOT NULL,
    decided_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE evidence (
    entry text NOT NULL REFERENCES outcomes ON DELETE CASCADE,
    number integer NOT NULL,
    part text NOT NULL,
    says text NOT NULL,
    held text NOT NULL, -- holds, contradicted, undecided, not run yet
    published text NOT NULL, -- both as shown to a reader
    measured text NOT NULL,
    seeds integer NOT NULL, -- 0: a calculation
    reason text NOT NULL,
    explains boolean NOT NULL,
    decided_by text NOT NULL, -- file of the experiment or model
    experiment text NOT NULL, -- its name, empty for a model
    PRIMARY KEY (entry, number)
);
