-- Functions that nodes call: each is one transaction. Rows are locked in this order, and rows of
-- one table by ascending key: node, tenant, claim, job, request, flight, job_queue (a claim behind
-- a stored lease comes behind its job where apply_batch ends it). No statement
-- may read a large table as a whole, whatever the statistics say, so that is turned off.

CREATE OR REPLACE FUNCTION join_node(p_name text, p_build text, p_address text, p_slots bigint)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  v_new bigint := nextval('incarnation');
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('npuc node ' || p_name, 0));
  -- An earlier life of this name can write nothing any more.
  UPDATE lane SET epoch = epoch + 1 WHERE incarnation IN
    (SELECT n.incarnation FROM node n WHERE n.name = p_name AND n.state <> 3);
  UPDATE node SET state = 3 WHERE name = p_name AND state <> 3;
  INSERT INTO node (incarnation, name, build_id, address, slots)
    VALUES (v_new, p_name, p_build, p_address, p_slots);
  INSERT INTO lane (incarnation, epoch, commit_no) VALUES (v_new, 1, 0);
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
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
  v_made text[];
  v_new text[];
  v_taken text[];
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
    PERFORM 1 FROM claim c WHERE c.id IN
        (SELECT q.held_by FROM unnest(p_job, p_state, p_fence) AS i(id, state, fence)
           JOIN job_queue q ON q.job_id = i.id JOIN claim k ON k.id = q.held_by
           WHERE i.state = 2 AND k.fence <> i.fence)
      ORDER BY c.id FOR UPDATE;
    v_leases := FOUND;
  END IF;
  PERFORM 1 FROM job WHERE job_id = ANY (p_job) ORDER BY job_id FOR UPDATE;
  WITH made AS (
    UPDATE job j SET state = i.state, revision = i.revision, last_seq = i.last_seq,
        ended_us = nullif(i.ended, -1), record = i.record
      FROM unnest(p_job, p_state, p_revision, p_old_seq, p_last_seq, p_ended, p_record)
        AS i(id, state, revision, old_seq, last_seq, ended, record)
      WHERE j.job_id = i.id AND i.revision > 1 AND j.revision = i.revision - 1
        AND j.last_seq = i.old_seq
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
      WHERE c.id = q.held_by AND i.state = 2 AND i.id = ANY (v_made) AND c.fence <> i.fence;
  END IF;
  -- A claim behind a stored lease (restore_claim, take_claims) goes with the lease: nobody renews or
  -- ends it. Its lock comes behind that of its job, which is what each that makes one holds first.
  FOR v_claim IN SELECT c.* FROM claim c
      WHERE c.held_until_us IS NOT NULL AND c.id = ANY (ARRAY(
        SELECT q.held_by FROM unnest(p_job, p_state, p_revision) AS i(id, state, revision)
            JOIN job_queue q ON q.job_id = i.id
          WHERE i.state <> 2 AND i.revision > 1 AND q.held_by IS NOT NULL AND i.id = ANY (v_made)))
      ORDER BY c.id FOR UPDATE
  LOOP
    PERFORM drop_claim(v_claim, true);
  END LOOP;
  IF cardinality(p_event_job) > 0 THEN
    INSERT INTO job_event (job_id, last_seq, body)
      SELECT e.id, e.seq, e.body FROM unnest(p_event_job, p_event_seq, p_event) AS e(id, seq, body)
        WHERE e.id = ANY (v_made) AND e.id <> ALL (v_taken);
  END IF;
  PERFORM 1 FROM job_queue q WHERE q.job_id IN
      (SELECT i.id FROM unnest(p_job, p_ended) AS i(id, ended)
         WHERE i.ended <> -1 AND i.id = ANY (v_made))
    ORDER BY q.job_id FOR UPDATE;
  DELETE FROM job_queue q USING unnest(p_job, p_ended) AS i(id, ended)
    WHERE q.job_id = i.id AND i.ended <> -1 AND i.id = ANY (v_made);
  DELETE FROM job_input n USING unnest(p_job, p_ended) AS i(id, ended)
    WHERE n.job_id = i.id AND i.ended <> -1 AND i.id = ANY (v_made);
  -- Without a gap, so that a reader sees whether it has missed one.
  INSERT INTO change (incarnation, commit_no, jobs) VALUES (p_incarnation, p_commit_no, v_made);
  DELETE FROM change WHERE incarnation = p_incarnation AND commit_no = p_commit_no - 1024;
  SELECT array_agg((CASE WHEN i.id = ANY (v_taken) THEN 2 WHEN i.id = ANY (v_made) THEN 0 ELSE 1 END)
                   ::bigint ORDER BY i.n)
    INTO v_results FROM unnest(p_job) WITH ORDINALITY AS i(id, n);
  UPDATE lane SET results = v_results WHERE incarnation = p_incarnation;
  RETURN v_results;
END $$;

-- What nodes other than p_own have written: of each lane the writes after the number that is known,
-- at most p_limit of them, a row for each job; a write that changed nothing has a row without one.
-- A lane that is not among p_lanes is new, and known up to 0.
CREATE OR REPLACE FUNCTION changes_since(p_own bigint, p_lanes bigint[], p_numbers bigint[],
                                         p_limit bigint)
RETURNS TABLE (lane bigint, number bigint, job_id text) LANGUAGE sql STABLE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
  SELECT c.incarnation, c.commit_no, j.id
    FROM lane l
      LEFT JOIN unnest(p_lanes, p_numbers) AS k(incarnation, number) USING (incarnation)
      CROSS JOIN LATERAL
        (SELECT n.* FROM change n
           WHERE n.incarnation = l.incarnation AND n.commit_no > coalesce(k.number, 0)
           ORDER BY n.commit_no LIMIT p_limit) AS c
      LEFT JOIN LATERAL unnest(c.jobs) AS j(id) ON true
    WHERE l.incarnation <> p_own AND l.commit_no > coalesce(k.number, 0)
    ORDER BY c.incarnation, c.commit_no
$$;

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

-- Equal jobs that wait follow a run, but for pinned ones. Rows that somebody changes are left: they
-- are seen to when it is their turn.
CREATE OR REPLACE FUNCTION follow_flight(p_key text, p_claim bigint)
RETURNS void LANGUAGE sql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
  UPDATE job_queue SET state = 2, follows = p_claim WHERE job_id = ANY (ARRAY(
    SELECT q.job_id FROM job_queue q
      WHERE q.flight_key = p_key AND q.state = 1 AND q.pinned_to IS NULL
      ORDER BY q.job_id LIMIT 1000 FOR UPDATE SKIP LOCKED))
$$;

-- The next job for a node; with p_pinned_only one that is for it alone. No row: there is none. A row without a claim: ask again.
CREATE OR REPLACE FUNCTION claim_next(p_incarnation bigint, p_owner text, p_pinned_only boolean)
RETURNS TABLE (claim_id bigint, claimed_job text) LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
  v_tenant tenant;
  v_job job_queue;
  v_run bigint;
  v_has_flight boolean := false;
  v_now double precision;
BEGIN
  PERFORM 1 FROM node WHERE incarnation = p_incarnation AND state = 1;
  IF NOT FOUND THEN RETURN; END IF;
  SELECT * INTO v_job FROM job_queue q
    WHERE q.pinned_to = p_owner AND q.pinned_to IS NOT NULL AND q.state = 1
    ORDER BY q.accept_order LIMIT 1 FOR UPDATE SKIP LOCKED;
  IF NOT FOUND AND p_pinned_only THEN RETURN; END IF;
  IF v_job.job_id IS NULL THEN
    SELECT coalesce(max(t.start_s), 0) INTO v_now FROM tenant t;
    SELECT * INTO v_tenant FROM tenant t
      WHERE EXISTS (SELECT 1 FROM job_queue q
                      WHERE q.tenant = t.tenant AND q.state = 1 AND q.pinned_to IS NULL)
        AND (t.max_running = 0 OR t.max_running >
             (SELECT count(*) FROM claim c WHERE c.tenant = t.tenant AND c.has_slot))
      ORDER BY greatest(t.virtual_s, v_now), t.tenant LIMIT 1 FOR UPDATE;
    IF NOT FOUND THEN RETURN; END IF;
    -- Asked again under the tenant's lock: other nodes claim, too.
    IF v_tenant.max_running > 0 AND v_tenant.max_running <=
        (SELECT count(*) FROM claim c WHERE c.tenant = v_tenant.tenant AND c.has_slot) THEN
      RETURN QUERY SELECT NULL::bigint, NULL::text;
      RETURN;
    END IF;
    SELECT * INTO v_job FROM job_queue q
      WHERE q.tenant = v_tenant.tenant AND q.state = 1 AND q.pinned_to IS NULL
      ORDER BY q.rank_us, q.accept_order LIMIT 1 FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
      RETURN QUERY SELECT NULL::bigint, NULL::text;
      RETURN;
    END IF;
  ELSE
    SELECT * INTO v_tenant FROM tenant t WHERE t.tenant = v_job.tenant;
  END IF;
  claim_id := nextval('claim_number');
  IF v_job.flight_key IS NOT NULL THEN
    INSERT INTO flight AS f (flight_key, claim_id) VALUES (v_job.flight_key, claim_next.claim_id)
      ON CONFLICT DO NOTHING;
    v_has_flight := FOUND;
    IF NOT v_has_flight AND v_job.pinned_to IS NULL THEN
      -- The lock makes the end of that run wait: nobody follows a run that has ended.
      SELECT f.claim_id INTO v_run FROM flight f WHERE f.flight_key = v_job.flight_key FOR SHARE;
      IF FOUND THEN PERFORM follow_flight(v_job.flight_key, v_run); END IF;
      RETURN QUERY SELECT NULL::bigint, NULL::text;
      RETURN;
    END IF;
  END IF;
  INSERT INTO claim (id, incarnation, owner, job_id, tenant, flight_key, charged_s)
    VALUES (claim_id, p_incarnation, p_owner, v_job.job_id, v_job.tenant,
            CASE WHEN v_has_flight THEN v_job.flight_key END, coalesce(v_tenant.mean_s, 0));
  UPDATE job_queue SET state = 3, held_by = claim_id WHERE job_id = v_job.job_id;
  IF v_has_flight THEN PERFORM follow_flight(v_job.flight_key, claim_id); END IF;
  IF v_job.pinned_to IS NULL THEN
    UPDATE tenant t SET start_s = greatest(t.virtual_s, v_now),
        virtual_s = greatest(t.virtual_s, v_now) + t.mean_s / t.weight
      WHERE t.tenant = v_tenant.tenant;
  END IF;
  claimed_job := v_job.job_id;
  RETURN NEXT;
END $$;

CREATE OR REPLACE FUNCTION start_claim(p_claim bigint, p_incarnation bigint, p_fence bigint,
                                       p_now bigint)
RETURNS boolean LANGUAGE plpgsql
SET enable_seqscan = off AS $$
DECLARE
  v_claim claim;
BEGIN
  UPDATE claim c SET fence = p_fence, started_us = p_now
    WHERE c.id = p_claim AND c.incarnation = p_incarnation
      AND EXISTS (SELECT 1 FROM node n WHERE n.incarnation = p_incarnation AND n.state <> 3)
    RETURNING c.* INTO v_claim;
  IF NOT FOUND THEN RETURN false; END IF;
  UPDATE job_queue SET state = 1, follows = NULL WHERE follows = p_claim AND state = 4;
  IF v_claim.flight_key IS NOT NULL THEN PERFORM follow_flight(v_claim.flight_key, p_claim); END IF;
  RETURN true;
END $$;

-- What a claim that frees its slot is charged for: nothing where it has none.
CREATE OR REPLACE FUNCTION used_by(p_claim claim, p_now bigint)
RETURNS double precision LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN NOT p_claim.has_slot THEN NULL
    WHEN p_claim.fence = 0 OR p_claim.started_us IS NULL THEN 0
    ELSE greatest(p_now - p_claim.started_us, 0) / 1000000.0::double precision END
$$;

-- The job of a claim runs no more: the claim is for its eldest follower now. No row: it is over.
CREATE OR REPLACE FUNCTION pass_claim_on(p_claim bigint, p_incarnation bigint, p_now bigint)
RETURNS TABLE (next_job text, tenant text, used_s double precision, charged_s double precision)
LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  v_claim claim;
  v_next job_queue;
BEGIN
  SELECT * INTO v_claim FROM claim c WHERE c.id = p_claim AND c.incarnation = p_incarnation
    FOR UPDATE;
  IF NOT FOUND THEN RETURN; END IF;
  IF v_claim.flight_key IS NOT NULL THEN PERFORM follow_flight(v_claim.flight_key, p_claim); END IF;
  UPDATE job_queue q SET state = 4, follows = p_claim, held_by = NULL
    WHERE q.job_id = v_claim.job_id AND q.held_by = p_claim;
  LOOP
    SELECT * INTO v_next FROM job_queue q WHERE q.follows = p_claim AND q.state = 2
      ORDER BY q.accept_order LIMIT 1 FOR UPDATE;
    EXIT WHEN FOUND;
    -- The eldest may have ended while its lock was waited for.
    PERFORM 1 FROM job_queue q WHERE q.follows = p_claim AND q.state = 2;
    EXIT WHEN NOT FOUND;
  END LOOP;
  tenant := v_claim.tenant;
  used_s := used_by(v_claim, p_now);
  charged_s := v_claim.charged_s;
  IF v_next.job_id IS NULL THEN
    UPDATE claim c SET fence = 0, has_slot = false WHERE c.id = p_claim;
  ELSE
    UPDATE job_queue q SET state = 3, held_by = p_claim, follows = NULL
      WHERE q.job_id = v_next.job_id;
    UPDATE claim c SET fence = 0, has_slot = true, charged_s = 0, started_us = NULL,
        job_id = v_next.job_id, tenant = v_next.tenant WHERE c.id = p_claim;
    next_job := v_next.job_id;
  END IF;
  RETURN NEXT;
END $$;

-- Rows of followers, and one without a job that says what was used.
CREATE OR REPLACE FUNCTION close_claim(p_claim bigint, p_incarnation bigint, p_now bigint)
RETURNS TABLE (follower text, tenant text, used_s double precision, charged_s double precision)
LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  v_claim claim;
BEGIN
  SELECT * INTO v_claim FROM claim c WHERE c.id = p_claim AND c.incarnation = p_incarnation
    FOR UPDATE;
  IF NOT FOUND THEN RETURN; END IF;
  IF v_claim.flight_key IS NOT NULL THEN
    PERFORM follow_flight(v_claim.flight_key, p_claim);
    DELETE FROM flight f WHERE f.flight_key = v_claim.flight_key AND f.claim_id = p_claim;
  END IF;
  UPDATE claim c SET has_slot = false, flight_key = NULL WHERE c.id = p_claim;
  RETURN QUERY SELECT NULL::text, v_claim.tenant, used_by(v_claim, p_now), v_claim.charged_s;
  RETURN QUERY SELECT q.job_id, NULL::text, NULL::double precision, NULL::double precision
    FROM job_queue q WHERE q.follows = p_claim AND q.state = 2 ORDER BY q.accept_order;
END $$;

-- Whoever calls it holds the claim's lock.
CREATE OR REPLACE FUNCTION drop_claim(p_claim claim, p_returns boolean)
RETURNS void LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
  DELETE FROM flight f WHERE f.flight_key = p_claim.flight_key AND f.claim_id = p_claim.id;
  PERFORM 1 FROM job_queue q WHERE q.follows = p_claim.id OR q.job_id = p_claim.job_id
    ORDER BY q.job_id FOR UPDATE;
  UPDATE job_queue q SET state = 1, follows = NULL WHERE q.follows = p_claim.id;
  IF p_returns THEN
    UPDATE job_queue q SET state = 1, held_by = NULL
      WHERE q.job_id = p_claim.job_id AND q.held_by = p_claim.id;
  END IF;
  DELETE FROM claim c WHERE c.id = p_claim.id;
END $$;

CREATE OR REPLACE FUNCTION end_claim(p_claim bigint, p_incarnation bigint, p_now bigint)
RETURNS TABLE (tenant text, used_s double precision, charged_s double precision)
LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  v_claim claim;
BEGIN
  SELECT * INTO v_claim FROM claim c WHERE c.id = p_claim AND c.incarnation = p_incarnation
    FOR UPDATE;
  IF NOT FOUND THEN RETURN; END IF;
  PERFORM drop_claim(v_claim, true);
  RETURN QUERY SELECT v_claim.tenant, used_by(v_claim, p_now), v_claim.charged_s;
END $$;

-- Claims of dead nodes; with p_own those alone that an earlier life of the owner had. Claims whose
-- job has a lease are the owner's from now on, and are returned.
CREATE OR REPLACE FUNCTION take_claims(p_incarnation bigint, p_owner text, p_own boolean,
                                       p_lapsed_us bigint)
RETURNS TABLE (claim_id bigint, taken_job text, taken_fence bigint) LANGUAGE plpgsql
SET enable_seqscan = off AS $$
DECLARE
  v_claim claim;
  v_runs boolean;
BEGIN
  FOR v_claim IN
    SELECT c.* FROM claim c
      WHERE c.incarnation <> p_incarnation AND CASE WHEN p_own THEN c.owner = p_owner ELSE
        EXISTS (SELECT 1 FROM node n WHERE n.incarnation = c.incarnation AND n.state = 3)
          OR c.held_until_us <= p_lapsed_us END
      ORDER BY c.id LIMIT 200 FOR UPDATE SKIP LOCKED
  LOOP
    v_runs := v_claim.fence <> 0 AND EXISTS (SELECT 1 FROM job_queue q
      WHERE q.job_id = v_claim.job_id AND q.held_by = v_claim.id);
    PERFORM drop_claim(v_claim, NOT v_runs);
    CONTINUE WHEN NOT v_runs;
    claim_id := nextval('claim_number');
    taken_job := v_claim.job_id;
    taken_fence := v_claim.fence;
    IF v_claim.flight_key IS NOT NULL THEN
      INSERT INTO flight AS f (flight_key, claim_id)
        VALUES (v_claim.flight_key, take_claims.claim_id) ON CONFLICT DO NOTHING;
      IF NOT FOUND THEN v_claim.flight_key := NULL; END IF;
    END IF;
    -- It has expired already: if this node fails, another one takes it.
    INSERT INTO claim (id, incarnation, owner, job_id, tenant, flight_key, fence, has_slot,
                       held_until_us)
      VALUES (claim_id, p_incarnation, p_owner, taken_job, v_claim.tenant, v_claim.flight_key,
              taken_fence, false, 0);
    UPDATE job_queue q SET held_by = claim_id WHERE q.job_id = taken_job;
    IF v_claim.flight_key IS NOT NULL THEN
      PERFORM follow_flight(v_claim.flight_key, claim_id);
    END IF;
    RETURN NEXT;
  END LOOP;
END $$;

-- The claim behind a lease that is stored; nothing where it is stored no more, the job is claimed, or
-- it follows a run.
CREATE OR REPLACE FUNCTION restore_claim(p_job text, p_owner text, p_fence bigint,
                                         p_held_until bigint)
RETURNS void LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  v_job job_queue;
  v_claim bigint := nextval('claim_number');
  v_has_flight boolean := false;
BEGIN
  -- The lease may have gone since the caller read it.
  PERFORM 1 FROM job j WHERE j.job_id = p_job AND j.state = 2 FOR SHARE;
  IF NOT FOUND THEN RETURN; END IF;
  SELECT * INTO v_job FROM job_queue q WHERE q.job_id = p_job AND q.state = 1 FOR UPDATE;
  IF NOT FOUND THEN RETURN; END IF;
  IF v_job.flight_key IS NOT NULL THEN
    INSERT INTO flight (flight_key, claim_id) VALUES (v_job.flight_key, v_claim)
      ON CONFLICT DO NOTHING;
    v_has_flight := FOUND;
  END IF;
  INSERT INTO claim (id, incarnation, owner, job_id, tenant, flight_key, fence, held_until_us)
    VALUES (v_claim, coalesce((SELECT max(n.incarnation) FROM node n WHERE n.name = p_owner), 0),
            p_owner, p_job, v_job.tenant, CASE WHEN v_has_flight THEN v_job.flight_key END,
            p_fence, p_held_until);
  UPDATE job_queue q SET state = 3, held_by = v_claim WHERE q.job_id = p_job;
END $$;

-- Sums of what ended runs used beyond what their starts were charged.
CREATE OR REPLACE FUNCTION charge_tenant(p_tenant text, p_excess_s double precision,
                                         p_runs bigint, p_used_s double precision)
RETURNS void LANGUAGE sql AS $$
  UPDATE tenant SET virtual_s = virtual_s + p_excess_s / weight,
      mean_s = CASE WHEN p_runs = 0 THEN mean_s ELSE
        mean_s + (1 - 0.9 ^ least(p_runs, 100)) * (p_used_s / p_runs - mean_s) END
    WHERE tenant = p_tenant
$$;

-- NULL: the tenant has no room; else the number of the place.
CREATE OR REPLACE FUNCTION reserve_place(p_tenant text, p_incarnation bigint, p_limit bigint)
RETURNS TABLE (place bigint, waiting bigint) LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('npuc queue ' || p_tenant, 0));
  SELECT (SELECT count(*) FROM (SELECT 1 FROM job_queue q
            WHERE q.tenant = p_tenant AND q.state <> 3 LIMIT p_limit) AS part)
       + (SELECT count(*) FROM reservation r WHERE r.tenant = p_tenant) INTO waiting;
  IF waiting < p_limit THEN
    place := nextval('claim_number');
    INSERT INTO reservation (id, tenant, incarnation) VALUES (place, p_tenant, p_incarnation);
  END IF;
  RETURN NEXT;
END $$;

-- place: 1 in order, 2 claimed, 3 follows a run, 4 runs. No row: it is not here.
CREATE OR REPLACE FUNCTION look_at_job(p_job text)
RETURNS TABLE (place integer, ahead bigint, limited boolean, running bigint, slots bigint,
               mean_s double precision) LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
  v_job job_queue;
  v_tenant tenant;
  v_start double precision;
BEGIN
  SELECT * INTO v_job FROM job_queue q WHERE q.job_id = p_job;
  IF NOT FOUND THEN RETURN; END IF;
  ahead := 0;
  limited := false;
  SELECT count(*) INTO running FROM claim c WHERE c.has_slot;
  SELECT greatest(coalesce(sum(n.slots), 0), 1) INTO slots FROM node n WHERE n.state = 1;
  SELECT * INTO v_tenant FROM tenant t WHERE t.tenant = v_job.tenant;
  mean_s := coalesce(v_tenant.mean_s, 2);
  IF v_job.state = 3 THEN
    place := CASE WHEN EXISTS (SELECT 1 FROM claim c WHERE c.id = v_job.held_by AND c.fence <> 0)
      THEN 4 ELSE 2 END;
  ELSIF v_job.state = 2 THEN
    place := 3;
  ELSIF v_job.state = 4 OR v_job.pinned_to IS NOT NULL THEN
    place := 2;
  ELSIF EXISTS (SELECT 1 FROM flight f WHERE f.flight_key = v_job.flight_key) THEN
    place := 3;
  ELSE
    place := 1;
    SELECT count(*) INTO ahead FROM (SELECT 1 FROM job_queue q
      WHERE q.tenant = v_job.tenant AND q.state = 1 AND q.pinned_to IS NULL
        AND (q.rank_us, q.accept_order) < (v_job.rank_us, v_job.accept_order)
      LIMIT 10000) AS part;
    limited := v_tenant.max_running > 0 AND v_tenant.max_running <=
      (SELECT count(*) FROM claim c WHERE c.tenant = v_job.tenant AND c.has_slot);
    -- Jobs of others start meanwhile, as if each took its tenant's mean time.
    v_start := v_tenant.virtual_s + ahead * v_tenant.mean_s / v_tenant.weight;
    ahead := ahead + (SELECT coalesce(sum((SELECT count(*) FROM (SELECT 1 FROM job_queue q
          WHERE q.tenant = t.tenant AND q.state = 1 AND q.pinned_to IS NULL
          LIMIT least(greatest(ceil((v_start - t.virtual_s) * t.weight / t.mean_s), 0), 10000)
            ::bigint) AS part)), 0)::bigint
        FROM tenant t WHERE t.tenant <> v_job.tenant);
  END IF;
  RETURN NEXT;
END $$;

CREATE OR REPLACE FUNCTION server_us()
RETURNS bigint LANGUAGE sql VOLATILE AS $$
  SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
$$;

-- A set of pieces that has no name is swept after a day.
CREATE OR REPLACE FUNCTION begin_pieces()
RETURNS bigint LANGUAGE sql AS $$
  INSERT INTO piece_set (id, begun_us) VALUES (nextval('piece_set_number'), server_us())
    RETURNING id
$$;

-- Of two contents of one name the one that came first stays, or with p_replaces the other; the
-- pieces of the one that goes are deleted.
CREATE OR REPLACE FUNCTION name_content(p_name text, p_scope text, p_kind bigint, p_bytes bigint,
                                        p_facts bytea, p_piece_set bigint, p_keep_us bigint,
                                        p_replaces boolean)
RETURNS void LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  v_old bigint;
BEGIN
  DELETE FROM piece_set WHERE id = p_piece_set;
  -- A repeat of a call whose answer was lost.
  IF EXISTS (SELECT 1 FROM content WHERE piece_set = p_piece_set) THEN RETURN; END IF;
  INSERT INTO content (name, scope, kind, bytes, facts, piece_set, keep_until_us)
    VALUES (p_name, p_scope, p_kind, p_bytes, p_facts, p_piece_set, server_us() + p_keep_us)
    ON CONFLICT DO NOTHING;
  IF FOUND THEN RETURN; END IF;
  IF NOT p_replaces THEN
    DELETE FROM piece WHERE piece_set = p_piece_set;
    RETURN;
  END IF;
  SELECT c.piece_set INTO v_old FROM content c WHERE c.name = p_name FOR UPDATE;
  UPDATE content SET bytes = p_bytes, facts = p_facts, piece_set = p_piece_set,
      keep_until_us = server_us() + p_keep_us WHERE name = p_name;
  DELETE FROM piece WHERE piece_set = v_old;
END $$;

-- A life is written where an hour of it is gone, so once an hour however often a content is used.
CREATE OR REPLACE FUNCTION find_content(p_names text[], p_keep_us bigint)
RETURNS SETOF content LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
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
  v_set bigint;
BEGIN
  DELETE FROM content c WHERE c.name = p_name RETURNING c.piece_set INTO v_set;
  DELETE FROM piece WHERE piece_set = v_set;
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
        ORDER BY c.keep_until_us LIMIT p_limit FOR UPDATE SKIP LOCKED)) RETURNING piece_set)
  SELECT coalesce(array_agg(piece_set), '{}') INTO v_sets FROM dead;
  WITH dead AS (
    DELETE FROM piece_set WHERE id = ANY (ARRAY(
      SELECT s.id FROM piece_set s WHERE s.begun_us < server_us() - 86400000000
        ORDER BY s.id LIMIT p_limit FOR UPDATE SKIP LOCKED)) RETURNING id)
  SELECT coalesce(array_agg(id), '{}') INTO v_left FROM dead;
  DELETE FROM piece WHERE piece_set = ANY (v_sets || v_left);
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
    DELETE FROM piece p WHERE p.piece_set = v_one.piece_set;
    left_bytes := left_bytes - v_one.bytes;
    removed := removed + 1;
  END LOOP;
  RETURN NEXT;
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
