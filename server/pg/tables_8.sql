-- From version 7 to version 8: tables that stay quick while an old snapshot keeps all versions of
-- their rows. Older nodes can use them.

-- Where claims look from (board_functions.sql, floor_of). A time is the server's.
CREATE TABLE queue_floor (
  tenant text COLLATE "C" PRIMARY KEY,
  rank_us bigint NOT NULL,
  until_us bigint NOT NULL
) WITH (fillfactor = 50);

-- A write names the number that the lane is at, so it finds that version of the row alone.
ALTER TABLE lane DROP CONSTRAINT lane_pkey;
ALTER TABLE lane ADD PRIMARY KEY (incarnation, commit_no);

-- Claims behind stored leases, of which there are few, apart from all others.
CREATE INDEX claim_restored ON claim (held_until_us) WHERE held_until_us IS NOT NULL;

-- Equal jobs in the order in which their rows are locked: by the key of the table a statement would
-- read all that waits.
CREATE INDEX queue_equal_jobs ON job_queue (flight_key, job_id)
  WHERE state = 1 AND flight_key IS NOT NULL;
DROP INDEX queue_equal;

DROP FUNCTION IF EXISTS look_at_job(text);
