-- SPDX-License-Identifier: Apache-2.0
-- A run's own time as a time that Grafana can draw: 2000-01-01 00:00:00 UTC is the run's start (dashboards/parts.py, ZERO_S).

CREATE FUNCTION elapsed(t_s double precision) RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT to_timestamp(946684800 + t_s)
$$;
