-- From version 1 to version 2. Functions whose parameters change go; functions.sql makes them anew.

-- The jobs that each write of a lane has changed; of each lane the newest 1024 writes. A node reads
-- by them what the others have done.
CREATE TABLE change (
  incarnation bigint,
  commit_no bigint,
  jobs text[] NOT NULL,
  PRIMARY KEY (incarnation, commit_no)
);

-- Contents that jobs which have not ended need.
CREATE TABLE job_input (
  name text COLLATE "C",
  job_id text COLLATE "C",
  PRIMARY KEY (name, job_id)
);
CREATE INDEX job_input_of_job ON job_input (job_id);

CREATE INDEX content_of_scope ON content (scope, kind);

DROP FUNCTION IF EXISTS apply_batch(
  bigint, bigint, bigint, text[], text[], bigint[], bigint[], bigint[], bigint[], bigint[], text[],
  bytea[], bytea[], bigint[], bigint[], text[], text[], bigint[], text[], bigint[], bytea[]);
DROP FUNCTION IF EXISTS claim_next(bigint, text);
