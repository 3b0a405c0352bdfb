-- From version 10 to version 11: feature levels, and the audit of the whole cluster. Older nodes go on:
-- they join at level 1, until the cluster's level is above that.

-- What the build of a node can read (server/base/features.h).
ALTER TABLE node ADD COLUMN feature_level bigint NOT NULL DEFAULT 1;
-- What nodes may write; it never falls. feature_since_us: since when all nodes that live know a
-- higher level, by the server's clock; NULL: they do not. A cluster without nodes waits for nobody.
ALTER TABLE cluster ADD COLUMN feature_level bigint NOT NULL DEFAULT 1;
ALTER TABLE cluster ADD COLUMN feature_since_us bigint;
UPDATE cluster SET feature_since_us = 0 WHERE NOT EXISTS (SELECT 1 FROM node);

-- It gets a parameter with a default, so older nodes call it as before.
DROP FUNCTION IF EXISTS claim_jobs(bigint, text, text, double precision, double precision, bigint);

-- One entry of the audit. life: the process that wrote it, as its entry `number`. No id is far above
-- the count of rows, so ids bound it.
CREATE TABLE audit (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  life bigint NOT NULL,
  number bigint NOT NULL,
  at_us bigint NOT NULL,
  node text COLLATE "C" NOT NULL,
  action text COLLATE "C" NOT NULL,
  identity text COLLATE "C" NOT NULL,
  tenant text COLLATE "C" NOT NULL,
  peer text COLLATE "C" NOT NULL,
  object text COLLATE "C" NOT NULL,
  result text COLLATE "C" NOT NULL,
  detail text COLLATE "C" NOT NULL,
  left_out bigint NOT NULL,
  UNIQUE (life, number)
);
CREATE INDEX audit_order ON audit (at_us, id);
