-- Contents: uploads and results, in pieces or in an object store. See functions.sql.

-- A set of pieces that has no name is swept after a day.
CREATE OR REPLACE FUNCTION begin_pieces()
RETURNS bigint LANGUAGE sql AS $$
  INSERT INTO piece_set (id, begun_us) VALUES (nextval('piece_set_number'), server_us())
    RETURNING id
$$;

-- Pieces go in this transaction; an object later, by doomed_objects.
CREATE OR REPLACE FUNCTION drop_bytes(p_piece_set bigint, p_object text)
RETURNS void LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
  IF p_object = '' THEN
    DELETE FROM piece WHERE piece_set = p_piece_set;
  ELSE
    INSERT INTO piece_set (id, begun_us, object) VALUES (p_piece_set, server_us(), p_object)
      ON CONFLICT DO NOTHING;
  END IF;
END $$;

-- Of two contents of one name the one that came first stays, or with p_replaces the other; the
-- bytes of the one that goes are dropped.
CREATE OR REPLACE FUNCTION set_content(p_name text, p_scope text, p_kind bigint, p_bytes bigint,
                                       p_facts bytea, p_piece_set bigint, p_object text,
                                       p_keep_us bigint, p_replaces boolean)
RETURNS void LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  v_old content;
BEGIN
  LOOP
    INSERT INTO content (name, scope, kind, bytes, facts, piece_set, object, keep_until_us)
      VALUES (p_name, p_scope, p_kind, p_bytes, p_facts, p_piece_set, p_object,
              server_us() + p_keep_us)
      ON CONFLICT (name) DO NOTHING;
    IF FOUND THEN RETURN; END IF;
    IF NOT p_replaces THEN
      PERFORM drop_bytes(p_piece_set, p_object);
      RETURN;
    END IF;
    SELECT * INTO v_old FROM content c WHERE c.name = p_name FOR UPDATE;
    EXIT WHEN FOUND;
  END LOOP;
  UPDATE content SET bytes = p_bytes, facts = p_facts, piece_set = p_piece_set, object = p_object,
      keep_until_us = server_us() + p_keep_us WHERE name = p_name;
  PERFORM drop_bytes(v_old.piece_set, v_old.object);
END $$;

CREATE OR REPLACE FUNCTION name_content(p_name text, p_scope text, p_kind bigint, p_bytes bigint,
                                        p_facts bytea, p_piece_set bigint, p_keep_us bigint,
                                        p_replaces boolean)
RETURNS void LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
  DELETE FROM piece_set WHERE id = p_piece_set;
  -- A repeat of a call whose answer was lost.
  IF EXISTS (SELECT 1 FROM content WHERE piece_set = p_piece_set) THEN RETURN; END IF;
  PERFORM set_content(p_name, p_scope, p_kind, p_bytes, p_facts, p_piece_set, '', p_keep_us,
                      p_replaces);
END $$;

-- Names of objects begin with the cluster and the time, so that a name tells its age: objects of
-- that time and later have this name or a greater one.
CREATE OR REPLACE FUNCTION object_time(p_us bigint)
RETURNS text LANGUAGE sql STABLE AS $$
  SELECT c.cluster_id || '/' || left(t.hex, 7) || '/' || substr(t.hex, 8)
    FROM cluster c, (SELECT lpad(to_hex(p_us), 16, '0') AS hex) AS t
$$;

-- A name that no object has had, whatever was restored or lost in a failover.
CREATE OR REPLACE FUNCTION new_object()
RETURNS text LANGUAGE sql VOLATILE AS $$
  SELECT object_time(server_us()) || '-' || left(replace(gen_random_uuid()::text, '-', ''), 16)
$$;

-- name_content of an object that is whole. SQLSTATE NP001: it may be gone by now, since a day has
-- passed, or an earlier call has dropped it.
CREATE OR REPLACE FUNCTION name_object(p_name text, p_scope text, p_kind bigint, p_bytes bigint,
                                       p_facts bytea, p_object text, p_keep_us bigint,
                                       p_replaces boolean)
RETURNS void LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('npuc object ' || p_object, 0));
  IF EXISTS (SELECT 1 FROM content WHERE object = p_object AND object <> '') THEN RETURN; END IF;
  IF p_object COLLATE "C" < object_time(server_us() - 86400000000)
      OR EXISTS (SELECT 1 FROM piece_set WHERE object = p_object AND object <> '') THEN
    RAISE EXCEPTION 'object % may be gone', p_object USING ERRCODE = 'NP001';
  END IF;
  PERFORM set_content(p_name, p_scope, p_kind, p_bytes, p_facts, nextval('piece_set_number'),
                      p_object, p_keep_us, p_replaces);
END $$;

-- Objects whose contents are gone. A minute passes before their bytes go: readers that found them
-- end, and a repeated name_object finds the row.
CREATE OR REPLACE FUNCTION doomed_objects(p_limit bigint)
RETURNS TABLE (id bigint, object text) LANGUAGE sql STABLE SET enable_seqscan = off AS $$
  SELECT s.id, s.object FROM piece_set s
    WHERE s.object <> '' AND s.begun_us < server_us() - 60000000 ORDER BY s.object LIMIT p_limit
$$;

-- Those of the names, as a store lists them, that nothing knows and that are older than two days.
CREATE OR REPLACE FUNCTION unknown_objects(p_names text[])
RETURNS SETOF text LANGUAGE sql STABLE SET enable_seqscan = off AS $$
  SELECT n FROM unnest(p_names) AS n
    WHERE n COLLATE "C" < object_time(server_us() - 172800000000)
      AND NOT EXISTS (SELECT 1 FROM content c WHERE c.object = n AND c.object <> '')
      AND NOT EXISTS (SELECT 1 FROM piece_set s WHERE s.object = n AND s.object <> '')
$$;

-- A life is written where an hour of it is gone, so once an hour however often a content is used.
CREATE OR REPLACE FUNCTION find_content(p_names text[], p_keep_us bigint)
RETURNS SETOF content LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  PERFORM 1 FROM content c
    WHERE c.name = ANY (p_names) AND c.keep_until_us < server_us() + p_keep_us - 3600000000
    ORDER BY c.name FOR UPDATE;
  IF FOUND THEN
    UPDATE content c SET keep_until_us = server_us() + p_keep_us
      WHERE c.name = ANY (p_names) AND c.keep_until_us < server_us() + p_keep_us - 3600000000;
  END IF;
  RETURN QUERY SELECT * FROM content c WHERE c.name = ANY (p_names);
END $$;

CREATE OR REPLACE FUNCTION remove_content(p_name text)
RETURNS void LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  v_old content;
BEGIN
  DELETE FROM content c WHERE c.name = p_name RETURNING * INTO v_old;
  IF FOUND THEN PERFORM drop_bytes(v_old.piece_set, v_old.object); END IF;
END $$;

-- Removes a content whose bytes are missing or wrong; one that took its name meanwhile stays.
CREATE OR REPLACE FUNCTION remove_damaged_content(p_name text, p_piece_set bigint)
RETURNS void LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
  PERFORM 1 FROM content c WHERE c.name = p_name AND c.piece_set = p_piece_set FOR UPDATE;
  IF FOUND THEN PERFORM remove_content(p_name); END IF;
END $$;

-- Removes a content that no live job needs. 0: it was not there; 1: it is gone; 2: a job needs it.
CREATE OR REPLACE FUNCTION remove_unneeded_content(p_name text)
RETURNS bigint LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
  PERFORM 1 FROM content c WHERE c.name = p_name FOR UPDATE;
  IF NOT FOUND THEN RETURN 0; END IF;
  IF EXISTS (SELECT 1 FROM job_input i WHERE i.name = p_name) THEN RETURN 2; END IF;
  PERFORM remove_content(p_name);
  RETURN 1;
END $$;

-- Removes contents that nobody keeps, and sets of pieces that got no name within a day. The inputs
-- of live jobs stay.
CREATE OR REPLACE FUNCTION sweep_content(p_limit bigint)
RETURNS bigint LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  v_sets bigint[];
  v_left bigint[];
BEGIN
  WITH dead AS (
    DELETE FROM content WHERE name = ANY (ARRAY(
      SELECT c.name FROM content c WHERE c.keep_until_us < server_us()
          AND NOT EXISTS (SELECT 1 FROM job_input i WHERE i.name = c.name)
        ORDER BY c.keep_until_us LIMIT p_limit FOR UPDATE SKIP LOCKED)) RETURNING piece_set, object),
  dropped AS (SELECT piece_set, drop_bytes(piece_set, object) FROM dead)
  SELECT coalesce(array_agg(piece_set), '{}') INTO v_sets FROM dropped;
  WITH dead AS (
    DELETE FROM piece_set WHERE id = ANY (ARRAY(
      SELECT s.id FROM piece_set s WHERE s.begun_us < server_us() - 86400000000 AND s.object = ''
        ORDER BY s.id LIMIT p_limit FOR UPDATE SKIP LOCKED)) RETURNING id)
  SELECT coalesce(array_agg(id), '{}') INTO v_left FROM dead;
  DELETE FROM piece WHERE piece_set = ANY (v_left);
  RETURN cardinality(v_sets) + cardinality(v_left);
END $$;

-- Removes contents, the longest unused first, until no more than p_most_bytes are left of all, or of
-- the blobs and parts of a scope; at most p_limit. Those that were used in the last p_idle_us stay, and the
-- inputs of live jobs. p_keep_us is that of find_content, which has written the times. Returns how
-- many went and the bytes that are left.
CREATE OR REPLACE FUNCTION evict_content(p_scope text, p_most_bytes bigint, p_keep_us bigint,
                                         p_idle_us bigint, p_limit bigint)
RETURNS TABLE (removed bigint, left_bytes bigint) LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  v_one content;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('npuc evict ' || coalesce(p_scope, ''), 0));
  removed := 0;
  IF p_scope IS NULL THEN
    SELECT coalesce(sum(c.bytes), 0) INTO left_bytes FROM content c;
  ELSE
    SELECT coalesce(sum(c.bytes), 0) INTO left_bytes FROM content c
      WHERE c.scope = p_scope AND c.kind IN (1, 3);
  END IF;
  IF left_bytes <= p_most_bytes THEN
    RETURN NEXT;
    RETURN;
  END IF;
  FOR v_one IN
    SELECT c.* FROM content c
      WHERE c.keep_until_us < server_us() + p_keep_us - p_idle_us - 3600000000
        AND (p_scope IS NULL OR (c.scope = p_scope AND c.kind IN (1, 3)))
        AND NOT EXISTS (SELECT 1 FROM job_input i WHERE i.name = c.name)
      ORDER BY c.keep_until_us LIMIT p_limit FOR UPDATE SKIP LOCKED
  LOOP
    EXIT WHEN left_bytes <= p_most_bytes;
    DELETE FROM content c WHERE c.name = v_one.name;
    PERFORM drop_bytes(v_one.piece_set, v_one.object);
    left_bytes := left_bytes - v_one.bytes;
    removed := removed + 1;
  END LOOP;
  RETURN NEXT;
END $$;
