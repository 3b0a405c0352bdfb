-- From version 4 to version 5: what operators decided by hand, by name. Older nodes do not read it.
CREATE TABLE kept_text (
  name text COLLATE "C" PRIMARY KEY,
  body bytea NOT NULL
);
