-- Functions that nodes call: each is one transaction. Rows are locked in this order, and rows of
-- one table by ascending key: node, tenant, claim, job, request, flight, job_queue (a claim behind
-- a stored lease comes behind its job where apply_batch ends it). No statement
-- may read a large table as a whole, whatever the statistics say, so that is turned off. Statements
-- that read arrays keep one plan (force_generic_plan): else PostgreSQL, which counts the elements of
-- each call, makes a new one for each and takes longer to plan than to run. Such a plan may be made
-- while a table is all but empty, when to read it whole seems cheapest. So rows are found by
-- "= ANY (array)", which can only be looked up, and "state + 0" and "incarnation + 0" keep indexes
-- by those away where another column finds the rows: the dead rows of a node may be very many.

CREATE OR REPLACE FUNCTION server_us()
RETURNS bigint LANGUAGE sql VOLATILE AS $$
  SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
$$;

-- The level that nodes may write. It rises by one when all live nodes have known more for p_wait_us;
-- nobody can go back from a level before its time. A cluster that has had no node waits for nobody.
CREATE OR REPLACE FUNCTION raise_feature_level(p_wait_us bigint)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  v_cluster cluster;
  v_known bigint;
BEGIN
  SELECT * INTO v_cluster FROM cluster;
  SELECT min(n.feature_level) INTO v_known FROM node n WHERE n.state <> 3;
  IF v_known IS NULL OR v_known <= v_cluster.feature_level THEN
    RETURN v_cluster.feature_level;
  END IF;
  IF server_us() - v_cluster.feature_since_us < p_wait_us THEN
    RETURN v_cluster.feature_level;
  END IF;
  -- A node that joins at this moment has joined before, and counts, or finds the new level.
  PERFORM pg_advisory_xact_lock(hashtextextended('npuc feature level', 0));
  SELECT min(n.feature_level) INTO v_known FROM node n WHERE n.state <> 3;
  UPDATE cluster SET feature_since_us = server_us()
    WHERE feature_level < v_known AND feature_since_us IS NULL;
  UPDATE cluster SET feature_since_us = NULL,
      feature_level = CASE WHEN feature_since_us = 0 THEN v_known ELSE feature_level + 1 END
    WHERE feature_level < v_known AND server_us() - feature_since_us >= p_wait_us;
  RETURN (SELECT c.feature_level FROM cluster c);
END $$;

-- The incarnation; where the cluster's feature level is above that of the node, minus that level.
CREATE OR REPLACE FUNCTION join_node(p_name text, p_build text, p_address text, p_slots bigint,
                                     p_level bigint)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  v_new bigint := nextval('incarnation');
  v_level bigint;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('npuc node ' || p_name, 0));
  PERFORM pg_advisory_xact_lock_shared(hashtextextended('npuc feature level', 0));
  SELECT c.feature_level INTO v_level FROM cluster c;
  IF v_level > p_level THEN
    RETURN -v_level;
  END IF;
  -- With an older node the wait for the next level begins anew.
  IF p_level = v_level THEN
    UPDATE cluster SET feature_since_us = NULL WHERE feature_since_us IS NOT NULL;
  END IF;
  -- An earlier life of this name can write nothing any more.
  UPDATE lane SET epoch = epoch + 1 WHERE incarnation IN
    (SELECT n.incarnation FROM node n WHERE n.name = p_name AND n.state <> 3);
  UPDATE node SET state = 3 WHERE name = p_name AND state <> 3;
  INSERT INTO node (incarnation, name, build_id, address, slots, feature_level)
    VALUES (v_new, p_name, p_build, p_address, p_slots, p_level);
  INSERT INTO lane (incarnation, epoch, commit_no) VALUES (v_new, 1, 0);
  RETURN v_new;
END $$;

-- How nodes of version 10 and before join; they know level 1.
CREATE OR REPLACE FUNCTION join_node(p_name text, p_build text, p_address text, p_slots bigint)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  v_new bigint := join_node(p_name, p_build, p_address, p_slots, 1);
BEGIN
  IF v_new < 0 THEN
    RAISE EXCEPTION 'NODE_TOO_OLD: the cluster is at feature level %, and this npucd knows levels up to 1; start a newer npucd, since the level never falls', -v_new;
  END IF;
  RETURN v_new;
END $$;

-- The cluster's time; NULL: the node was declared dead.
CREATE OR REPLACE FUNCTION beat_node(p_incarnation bigint)
RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
  UPDATE node SET beat = beat + 1 WHERE incarnation = p_incarnation AND state <> 3;
  IF NOT FOUND THEN RETURN NULL; END IF;
  RETURN (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;
END $$;

-- False: it was heard of meanwhile, or is dead already.
CREATE OR REPLACE FUNCTION declare_dead(p_incarnation bigint, p_beat bigint)
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  UPDATE node SET state = 3 WHERE incarnation = p_incarnation AND beat = p_beat AND state <> 3;
  IF NOT FOUND THEN RETURN false; END IF;
  UPDATE lane SET epoch = epoch + 1 WHERE incarnation = p_incarnation;
  DELETE FROM reservation WHERE incarnation = p_incarnation;
  RETURN true;
END $$;

-- One write of many changes, of one job at most one. Results: 0 made; 1 not the next change of its
-- job; 2 the request id is another job's.
CREATE OR REPLACE FUNCTION apply_batch(
  p_incarnation bigint, p_epoch bigint, p_commit_no bigint,
  p_job text[], p_tenant text[], p_state bigint[], p_revision bigint[], p_old_seq bigint[],
  p_last_seq bigint[], p_ended bigint[], p_request text[], p_record bytea[], p_config bytea[],
  p_rank bigint[], p_order bigint[], p_flight text[], p_pinned text[], p_due bigint[],
  p_event_job text[], p_event_seq bigint[], p_event bytea[],
  p_input_job text[], p_input_name text[], p_fence bigint[])
RETURNS bigint[] LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  v_made text[];
  v_new text[];
  v_taken text[];
  v_ended text[];
  v_results bigint[];
  v_leases boolean := false;
  v_claim claim;
BEGIN
  UPDATE lane SET commit_no = p_commit_no
    WHERE incarnation = p_incarnation AND epoch = p_epoch AND commit_no = p_commit_no - 1;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'the lane of node % is not at epoch % and commit %',
      p_incarnation, p_epoch, p_commit_no - 1 USING ERRCODE = 'NP001';
  END IF;
  -- A lease is on the board with the write that stores it: the call of start_claim that follows may
  -- get lost with a crash, and then the job of a dead node would seem to wait.
  IF 2 = ANY (p_state) THEN
    PERFORM 1 FROM unnest(p_job, p_state, p_fence) AS i(id, state, fence)
        JOIN job_queue q ON q.job_id = i.id JOIN claim c ON c.id = q.held_by
      WHERE q.job_id = ANY (p_job) AND i.state = 2 AND c.fence <> i.fence
        AND c.id = ANY (ARRAY(SELECT h.held_by FROM job_queue h WHERE h.job_id = ANY (p_job)))
      ORDER BY c.id FOR UPDATE OF c;
    v_leases := FOUND;
  END IF;
  PERFORM 1 FROM job WHERE job_id = ANY (p_job) ORDER BY job_id FOR UPDATE;
  WITH made AS (
    UPDATE job j SET state = i.state, revision = i.revision, last_seq = i.last_seq,
        ended_us = nullif(i.ended, -1), record = i.record
      FROM unnest(p_job, p_state, p_revision, p_old_seq, p_last_seq, p_ended, p_record)
        AS i(id, state, revision, old_seq, last_seq, ended, record)
      WHERE j.job_id = ANY (p_job) AND j.job_id = i.id AND i.revision > 1
        AND j.revision = i.revision - 1 AND j.last_seq = i.old_seq
      RETURNING j.job_id)
  SELECT coalesce(array_agg(job_id), '{}') INTO v_made FROM made;
  WITH made AS (
    INSERT INTO job (job_id, tenant, state, revision, last_seq, ended_us, request_id, record)
      SELECT i.id, i.tenant, i.state, 1, i.last_seq, nullif(i.ended, -1), i.request, i.record
        FROM unnest(p_job, p_tenant, p_state, p_revision, p_old_seq, p_last_seq, p_ended,
                    p_request, p_record)
          AS i(id, tenant, state, revision, old_seq, last_seq, ended, request, record)
        WHERE i.revision = 1 AND i.old_seq = 0
        ORDER BY i.id
      ON CONFLICT DO NOTHING RETURNING job_id)
  SELECT coalesce(array_agg(job_id), '{}') INTO v_new FROM made;
  v_taken := '{}';
  IF v_new <> '{}' THEN
    WITH made AS (
      INSERT INTO request (tenant, request_id, job_id)
        SELECT i.tenant, i.request, i.id FROM unnest(p_job, p_tenant, p_request)
            AS i(id, tenant, request)
          WHERE i.request <> '' AND i.id = ANY (v_new)
          ORDER BY i.tenant, i.request
        ON CONFLICT DO NOTHING RETURNING job_id)
    SELECT coalesce(array_agg(i.id), '{}') INTO v_taken FROM unnest(p_job, p_request) AS i(id, request)
      WHERE i.request <> '' AND i.id = ANY (v_new)
        AND NOT EXISTS (SELECT 1 FROM made WHERE made.job_id = i.id);
    IF v_taken <> '{}' THEN DELETE FROM job WHERE job_id = ANY (v_taken); END IF;
    INSERT INTO job_config (job_id, body)
      SELECT i.id, i.config FROM unnest(p_job, p_config) AS i(id, config)
        WHERE i.id = ANY (v_new) AND i.id <> ALL (v_taken);
    INSERT INTO job_queue (job_id, tenant, rank_us, accept_order, flight_key, pinned_to, due_us)
      SELECT i.id, i.tenant, i.rank, i.accept_order, i.flight, i.pinned, i.due
        FROM unnest(p_job, p_tenant, p_ended, p_rank, p_order, p_flight, p_pinned, p_due)
          AS i(id, tenant, ended, rank, accept_order, flight, pinned, due)
        WHERE i.ended = -1 AND i.id = ANY (v_new) AND i.id <> ALL (v_taken)
      ON CONFLICT DO NOTHING;
    INSERT INTO job_input (job_id, name)
      SELECT i.id, i.name FROM unnest(p_input_job, p_input_name) AS i(id, name)
        WHERE i.id = ANY (v_new) AND i.id <> ALL (v_taken)
      ON CONFLICT DO NOTHING;
  END IF;
  v_made := v_made || v_new;
  IF v_leases THEN
    UPDATE claim c SET fence = i.fence
      FROM unnest(p_job, p_state, p_fence) AS i(id, state, fence) JOIN job_queue q ON q.job_id = i.id
      WHERE q.job_id = ANY (v_made) AND c.id = q.held_by AND i.state = 2 AND c.fence <> i.fence
        AND c.id = ANY (ARRAY(SELECT h.held_by FROM job_queue h WHERE h.job_id = ANY (v_made)));
  END IF;
  -- A claim behind a stored lease (restore_claim, take_claims) goes with the lease: nobody renews or
  -- ends it. Its lock comes behind that of its job, which is what each that makes one holds first.
  FOR v_claim IN SELECT c.* FROM claim c
      WHERE c.held_until_us IS NOT NULL AND c.id = ANY (ARRAY(
        SELECT q.held_by FROM unnest(p_job, p_state, p_revision) AS i(id, state, revision)
            JOIN job_queue q ON q.job_id = i.id
          WHERE q.job_id = ANY (v_made) AND i.state <> 2 AND i.revision > 1
            AND q.held_by IS NOT NULL))
      ORDER BY c.id FOR UPDATE
  LOOP
    PERFORM drop_claim(v_claim, true);
  END LOOP;
  IF cardinality(p_event_job) > 0 THEN
    INSERT INTO job_event (job_id, last_seq, body)
      SELECT e.id, e.seq, e.body FROM unnest(p_event_job, p_event_seq, p_event) AS e(id, seq, body)
        WHERE e.id = ANY (v_made) AND e.id <> ALL (v_taken);
  END IF;
  v_ended := ARRAY(SELECT i.id FROM unnest(p_job, p_ended) AS i(id, ended)
    WHERE i.ended <> -1 AND i.id = ANY (v_made));
  IF v_ended <> '{}' THEN
    PERFORM 1 FROM job_queue q WHERE q.job_id = ANY (v_ended) ORDER BY q.job_id FOR UPDATE;
    DELETE FROM job_queue q WHERE q.job_id = ANY (v_ended);
    DELETE FROM job_input n WHERE n.job_id = ANY (v_ended);
  END IF;
  -- Without a gap, so that a reader sees whether it has missed one.
  INSERT INTO change (incarnation, commit_no, jobs) VALUES (p_incarnation, p_commit_no, v_made);
  DELETE FROM change WHERE incarnation = p_incarnation AND commit_no = p_commit_no - 1024;
  SELECT array_agg((CASE WHEN i.id = ANY (v_taken) THEN 2 WHEN i.id = ANY (v_made) THEN 0 ELSE 1 END)
                   ::bigint ORDER BY i.n)
    INTO v_results FROM unnest(p_job) WITH ORDINALITY AS i(id, n);
  UPDATE lane SET results = v_results
    WHERE incarnation = p_incarnation AND commit_no = p_commit_no;
  RETURN v_results;
END $$;

-- What nodes other than p_own have written: of each lane the writes after the number that is known,
-- at most p_limit of them, a row for each job; a write that changed nothing has a row without one.
-- A lane that is not among p_lanes is new, and known up to 0. Table lane is not asked: its rows
-- change with each write, and an old snapshot keeps every version of them.
CREATE OR REPLACE FUNCTION changes_since(p_own bigint, p_lanes bigint[], p_numbers bigint[],
                                         p_limit bigint)
RETURNS TABLE (lane bigint, number bigint, job_id text) LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  RETURN QUERY SELECT c.incarnation, c.commit_no, j.id
    FROM node o
      LEFT JOIN unnest(p_lanes, p_numbers) AS k(incarnation, number) USING (incarnation)
      CROSS JOIN LATERAL
        (SELECT n.* FROM change n
           WHERE n.incarnation = o.incarnation AND n.commit_no > coalesce(k.number, 0)
           ORDER BY n.commit_no LIMIT p_limit) AS c
      LEFT JOIN LATERAL unnest(c.jobs) AS j(id) ON true
    WHERE o.incarnation <> p_own
    ORDER BY c.incarnation, c.commit_no;
END $$;

-- After a lost answer. It waits for a session of the lane that may still be committing, and beats
-- one that comes later. No row: the lane is another one's.
CREATE OR REPLACE FUNCTION take_lane(p_incarnation bigint, p_epoch bigint)
RETURNS TABLE (epoch bigint, commit_no bigint, results bigint[]) LANGUAGE sql AS $$
  UPDATE lane l SET epoch = l.epoch + 1 WHERE l.incarnation = p_incarnation AND l.epoch = p_epoch
    RETURNING l.epoch, l.commit_no, l.results
$$;

CREATE OR REPLACE FUNCTION prune_jobs(p_before bigint, p_limit bigint)
RETURNS bigint LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
  v_jobs text[];
BEGIN
  SELECT coalesce(array_agg(d.job_id), '{}') INTO v_jobs FROM
    (SELECT j.job_id FROM job j WHERE j.ended_us IS NOT NULL AND j.ended_us < p_before
       ORDER BY j.ended_us, j.job_id LIMIT p_limit FOR UPDATE SKIP LOCKED) AS d;
  DELETE FROM request r USING job j
    WHERE j.job_id = ANY (v_jobs) AND r.tenant = j.tenant AND r.request_id = j.request_id
      AND r.job_id = j.job_id;
  DELETE FROM job_config WHERE job_id = ANY (v_jobs);
  DELETE FROM job_event WHERE job_id = ANY (v_jobs);
  DELETE FROM job WHERE job_id = ANY (v_jobs);
  RETURN cardinality(v_jobs);
END $$;

-- Puts a text in the place of another; empty stands for none. False: it is another one by now.
CREATE OR REPLACE FUNCTION replace_text(p_name text, p_before bytea, p_after bytea)
RETURNS boolean LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  v_now bytea;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('npuc text ' || p_name, 0));
  SELECT t.body INTO v_now FROM kept_text t WHERE t.name = p_name;
  v_now := coalesce(v_now, ''::bytea);
  -- A repeated call finds what the first one put.
  IF v_now = p_after THEN RETURN true; END IF;
  IF v_now <> p_before THEN RETURN false; END IF;
  DELETE FROM kept_text WHERE name = p_name;
  IF p_after <> ''::bytea THEN
    INSERT INTO kept_text (name, body) VALUES (p_name, p_after);
  END IF;
  RETURN true;
END $$;

-- Forgets lives of nodes that ended long ago: the newest thousand stay, and those with claims that
-- another node is to take over.
CREATE OR REPLACE FUNCTION forget_dead_nodes()
RETURNS bigint LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  v_dead bigint[];
BEGIN
  SELECT coalesce(array_agg(d.incarnation), '{}') INTO v_dead FROM
    (SELECT n.incarnation FROM node n WHERE n.state = 3
       AND NOT EXISTS (SELECT 1 FROM claim c WHERE c.incarnation = n.incarnation)
       ORDER BY n.incarnation DESC OFFSET 1000) AS d;
  DELETE FROM change WHERE incarnation = ANY (v_dead);
  DELETE FROM lane WHERE incarnation = ANY (v_dead);
  DELETE FROM node WHERE incarnation = ANY (v_dead);
  RETURN cardinality(v_dead);
END $$;

-- A node that stops on purpose: from now on others may take over what it left.
CREATE OR REPLACE FUNCTION leave_node(p_incarnation bigint)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE node SET state = 3 WHERE incarnation = p_incarnation AND state <> 3;
  IF NOT FOUND THEN RETURN; END IF;
  UPDATE lane SET epoch = epoch + 1 WHERE incarnation = p_incarnation;
  DELETE FROM reservation WHERE incarnation = p_incarnation;
END $$;

-- The sums of one process, row by row. A day that may have been folded takes no more.
CREATE OR REPLACE FUNCTION write_usage(p_life bigint, p_days text[], p_tenants text[],
                                       p_sums bigint[], p_columns bigint)
RETURNS void LANGUAGE sql AS $$
  INSERT INTO usage (day, tenant, life, sums)
    SELECT u.day, u.tenant, p_life, p_sums[(u.i - 1) * p_columns + 1 : u.i * p_columns]
      FROM unnest(p_days, p_tenants) WITH ORDINALITY AS u (day, tenant, i)
      WHERE u.day >= to_char(now() AT TIME ZONE 'UTC' - interval '2 days', 'YYYY-MM-DD')
      ORDER BY u.day, u.tenant
    ON CONFLICT (day, tenant, life) DO UPDATE SET sums = EXCLUDED.sums
$$;

-- Adds together what processes used on days that are over, and forgets what is older than p_days.
CREATE OR REPLACE FUNCTION fold_usage(p_days bigint)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  WITH over AS (
    DELETE FROM usage
      WHERE day < to_char(now() AT TIME ZONE 'UTC' - interval '4 days', 'YYYY-MM-DD') AND life <> 0
      RETURNING day, tenant, sums),
  columns AS (
    SELECT over.day, over.tenant, s.i, sum(s.value)::bigint AS total
      FROM over, unnest(over.sums) WITH ORDINALITY AS s (value, i)
      GROUP BY over.day, over.tenant, s.i)
  INSERT INTO usage AS u (day, tenant, life, sums)
    SELECT c.day, c.tenant, 0, array_agg(c.total ORDER BY c.i) FROM columns c
      GROUP BY c.day, c.tenant ORDER BY c.day, c.tenant
    ON CONFLICT (day, tenant, life) DO UPDATE SET sums = (
      SELECT array_agg(coalesce(s.a, 0) + coalesce(s.b, 0) ORDER BY s.i)
        FROM unnest(u.sums, EXCLUDED.sums) WITH ORDINALITY AS s (a, b, i));
  DELETE FROM usage
    WHERE day < to_char(now() AT TIME ZONE 'UTC' - make_interval(days => p_days::integer),
                        'YYYY-MM-DD');
END $$;
