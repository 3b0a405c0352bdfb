-- From version 5 to version 6: contents in an object store (--cluster-content). object: the name
-- there; empty: the content is in pieces. A piece_set with an object is one whose content is gone,
-- since begun_us; its bytes go next. Older nodes may start until a node opens an object store, which
-- raises the number (Content::OpenObjects).
ALTER TABLE content ADD COLUMN object text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE piece_set ADD COLUMN object text COLLATE "C" NOT NULL DEFAULT '';
CREATE UNIQUE INDEX content_object ON content (object) WHERE object <> '';
CREATE INDEX piece_set_object ON piece_set (object) WHERE object <> '';
