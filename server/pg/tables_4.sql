-- From version 3 to version 4: tables say which nodes may use them. A step that older nodes can live
-- with (new tables, new columns with a default, more functions) leaves the number; another step
-- raises it to its own version.
ALTER TABLE cluster ADD COLUMN min_node_version integer NOT NULL DEFAULT 4;
