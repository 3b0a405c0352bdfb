-- From version 8 to version 9: the use of the service by day and tenant. Older nodes do not read it.
-- life: the process whose sums they are, which alone writes them; 0: processes whose days are over.
CREATE TABLE usage (
  day text COLLATE "C" NOT NULL,
  tenant text COLLATE "C" NOT NULL,
  life bigint NOT NULL,
  sums bigint[] NOT NULL,
  PRIMARY KEY (day, tenant, life)
) WITH (fillfactor = 70);
