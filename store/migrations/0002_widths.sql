-- SPDX-License-Identifier: Apache-2.0
-- The width (ms) of the points to draw for a wanted width: the widest that is not wider, or the run's finest.

CREATE FUNCTION width_ms(finest integer, wanted double precision) RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT greatest(finest, CASE WHEN wanted >= 600000 THEN 600000 WHEN wanted >= 60000 THEN 60000
        WHEN wanted >= 10000 THEN 10000 WHEN wanted >= 1000 THEN 1000 WHEN wanted >= 100 THEN 100 ELSE 10 END)
$$;
