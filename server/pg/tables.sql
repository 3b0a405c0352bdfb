-- Tables of version 1. Times are microseconds since 1970, by the clock of the cluster (node.h).

CREATE SEQUENCE incarnation;
CREATE SEQUENCE claim_number;
-- Each node takes blocks of numbers.
CREATE SEQUENCE accept_block;

CREATE TABLE cluster (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  cluster_id uuid NOT NULL DEFAULT gen_random_uuid(),
  schema_version integer NOT NULL
);

-- One life of a daemon. state: 1 lives, 2 drains, 3 is dead for good.
CREATE TABLE node (
  incarnation bigint PRIMARY KEY,
  name text COLLATE "C" NOT NULL,
  build_id text NOT NULL,
  address text NOT NULL,
  slots integer NOT NULL,
  beat bigint NOT NULL DEFAULT 0,
  state smallint NOT NULL DEFAULT 1
) WITH (fillfactor = 50);

-- A node's writes pass here, one after the other. Whoever declares a node dead raises the epoch:
-- from that commit on no write of the node succeeds. The number tells after a lost answer whether
-- the write was made; `results` are those of the newest one.
CREATE TABLE lane (
  incarnation bigint PRIMARY KEY,
  epoch bigint NOT NULL,
  commit_no bigint NOT NULL,
  results bigint[] NOT NULL DEFAULT '{}'
) WITH (fillfactor = 50);

CREATE TABLE job (
  job_id text COLLATE "C" PRIMARY KEY,
  tenant text COLLATE "C" NOT NULL,
  state smallint NOT NULL,
  revision bigint NOT NULL,
  last_seq bigint NOT NULL,
  ended_us bigint,
  request_id text COLLATE "C" NOT NULL,
  record bytea NOT NULL
) WITH (fillfactor = 60);
CREATE INDEX job_of_tenant ON job (tenant, job_id);
CREATE INDEX job_ended ON job (ended_us, job_id) WHERE ended_us IS NOT NULL;
CREATE INDEX job_live ON job (job_id) WHERE ended_us IS NULL;

CREATE TABLE job_config (job_id text COLLATE "C" PRIMARY KEY, body bytea NOT NULL);
-- Events of one change, up to number last_seq, one behind the other.
CREATE TABLE job_event (
  job_id text COLLATE "C",
  last_seq bigint,
  body bytea NOT NULL,
  PRIMARY KEY (job_id, last_seq)
);
CREATE TABLE request (
  tenant text COLLATE "C",
  request_id text COLLATE "C",
  job_id text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant, request_id)
);

-- What has not ended. state: 1 waits; 2 follows the run of claim `follows`; 3 is held by claim
-- `held_by`; 4 was passed over by claim `follows`, until that starts or ends.
CREATE TABLE job_queue (
  job_id text COLLATE "C" PRIMARY KEY,
  tenant text COLLATE "C" NOT NULL,
  rank_us bigint NOT NULL,
  accept_order bigint NOT NULL,
  flight_key text COLLATE "C",
  pinned_to text COLLATE "C",
  due_us bigint NOT NULL,
  state smallint NOT NULL DEFAULT 1,
  held_by bigint,
  follows bigint
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX queue_order ON job_queue (tenant, rank_us, accept_order)
  WHERE state = 1 AND pinned_to IS NULL;
CREATE INDEX queue_pinned ON job_queue (pinned_to, accept_order)
  WHERE state = 1 AND pinned_to IS NOT NULL;
CREATE INDEX queue_equal ON job_queue (flight_key) WHERE state = 1 AND flight_key IS NOT NULL;
CREATE INDEX queue_follows ON job_queue (follows, accept_order) WHERE follows IS NOT NULL;
CREATE INDEX queue_of_tenant ON job_queue (tenant) WHERE state <> 3;
CREATE INDEX queue_due ON job_queue (due_us);

CREATE TABLE claim (
  id bigint PRIMARY KEY,
  incarnation bigint NOT NULL,
  owner text COLLATE "C" NOT NULL,
  job_id text COLLATE "C" NOT NULL,
  tenant text COLLATE "C" NOT NULL,
  flight_key text COLLATE "C",
  fence bigint NOT NULL DEFAULT 0,
  has_slot boolean NOT NULL DEFAULT true,
  charged_s double precision NOT NULL DEFAULT 0,
  started_us bigint,
  held_until_us bigint
) WITH (fillfactor = 60);
CREATE INDEX claim_of_node ON claim (incarnation);
CREATE INDEX claim_of_tenant ON claim (tenant) WHERE has_slot;

-- The run that equal jobs follow.
CREATE TABLE flight (flight_key text COLLATE "C" PRIMARY KEY, claim_id bigint NOT NULL);

-- Start-time fair queueing: the tenant with the least virtual time is served next.
CREATE TABLE tenant (
  tenant text COLLATE "C" PRIMARY KEY,
  virtual_s double precision NOT NULL DEFAULT 0,
  start_s double precision NOT NULL DEFAULT 0,
  mean_s double precision NOT NULL DEFAULT 2,
  weight double precision NOT NULL DEFAULT 1,
  max_running bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

-- Places in the queue that were promised to jobs about to be stored.
CREATE TABLE reservation (
  id bigint PRIMARY KEY,
  tenant text COLLATE "C" NOT NULL,
  incarnation bigint NOT NULL
);
CREATE INDEX reservation_of_tenant ON reservation (tenant);

-- Content: the bytes of a blob or of a result, cut into pieces. A set of pieces begins, gets its
-- pieces, then its name: where a name is, all pieces are. keep_until_us is by the server's clock.
CREATE TABLE content (
  name text COLLATE "C" PRIMARY KEY,
  scope text COLLATE "C" NOT NULL,
  kind smallint NOT NULL,
  bytes bigint NOT NULL,
  facts bytea NOT NULL,
  piece_set bigint NOT NULL UNIQUE,
  keep_until_us bigint NOT NULL
);
CREATE INDEX content_kept ON content (keep_until_us);
CREATE TABLE piece_set (
  id bigint PRIMARY KEY,
  begun_us bigint NOT NULL
);
CREATE SEQUENCE piece_set_number;
CREATE TABLE piece (
  piece_set bigint,
  no bigint,
  body bytea NOT NULL,
  PRIMARY KEY (piece_set, no)
);
ALTER TABLE piece ALTER COLUMN body SET STORAGE EXTERNAL;
