-- SPDX-License-Identifier: Apache-2.0
-- A campaign in virtual time makes its transfers side by side: each starts at the same instant of its guest's clock.

ALTER TABLE runs ADD COLUMN clock_at timestamptz; -- start on a virtual campaign's own clock; NULL where started_at says it
