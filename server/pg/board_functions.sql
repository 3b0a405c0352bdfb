-- The board: the order of jobs that wait, claims, and what tenants are charged. See functions.sql.

-- Equal jobs that wait follow a run, but for pinned ones. Rows that somebody changes are left: they
-- are seen to when it is their turn.
CREATE OR REPLACE FUNCTION follow_flight(p_key text, p_claim bigint)
RETURNS void LANGUAGE sql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET enable_sort = off AS $$
  UPDATE job_queue SET state = 2, follows = p_claim WHERE job_id = ANY (ARRAY(
    SELECT q.job_id FROM job_queue q
      WHERE q.flight_key = p_key AND q.state = 1 AND q.pinned_to IS NULL
      ORDER BY q.job_id LIMIT 1000 FOR UPDATE SKIP LOCKED))
$$;

-- A claimed job leaves an entry in the index of the queue's order. While a snapshot from before the
-- claim lives no such entry can go, and each claim would step over all of them. So claims look from
-- a floor on, where there is one: nothing below it waited when it was raised. What comes below it
-- afterwards (a job with a high priority, or one that goes back to its place) waits until the floor
-- is raised anew, or its time is over.
CREATE OR REPLACE FUNCTION floor_of(p_tenant text)
RETURNS bigint LANGUAGE plpgsql STABLE SET enable_seqscan = off AS $$
BEGIN
  RETURN coalesce((SELECT f.rank_us FROM queue_floor f WHERE f.tenant = p_tenant
      AND f.until_us > (extract(epoch FROM statement_timestamp()) * 1000000)::bigint),
    -9223372036854775808);
END $$;

-- Raises the floors of all tenants for p_hold_us. False: another node has just done it.
CREATE OR REPLACE FUNCTION raise_floors(p_hold_us bigint)
RETURNS boolean LANGUAGE plpgsql
SET enable_seqscan = off SET enable_sort = off AS $$
DECLARE
  v_tenant text;
  v_first bigint;
BEGIN
  IF NOT pg_try_advisory_xact_lock(hashtextextended('npuc floors', 0)) OR
      EXISTS (SELECT 1 FROM queue_floor f WHERE f.until_us > server_us() + p_hold_us / 2) THEN
    RETURN false;
  END IF;
  FOR v_tenant IN SELECT t.tenant FROM tenant t ORDER BY t.tenant LOOP
    SELECT q.rank_us INTO v_first FROM job_queue q
      WHERE q.tenant = v_tenant AND q.state = 1 AND q.pinned_to IS NULL
      ORDER BY q.rank_us, q.accept_order LIMIT 1;
    -- Where none waits: from the last second on, so that what is being stored now is not below.
    DELETE FROM queue_floor f WHERE f.tenant = v_tenant;
    INSERT INTO queue_floor (tenant, rank_us, until_us)
      VALUES (v_tenant, coalesce(v_first, server_us() - 1000000), server_us() + p_hold_us);
  END LOOP;
  RETURN true;
END $$;

-- What a node may claim: a row for each tenant with a job that any node may start, and one without a
-- tenant, whose clock is the greatest floor of any claim, and whose room is the number of jobs that
-- are pinned to the owner, at most one. room: the runs that the tenant's bound leaves.
CREATE OR REPLACE FUNCTION read_claimable(p_owner text)
RETURNS TABLE (tenant text, clock_s double precision, mean_s double precision,
               weight double precision, room bigint) LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off
SET enable_mergejoin = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  -- OFFSET 0: one look for each tenant. As a join it may read all that waits. The floor is that of
  -- floor_of; a call of it for each of 1,000 tenants takes half of the time.
  RETURN QUERY WITH tenants AS MATERIALIZED (SELECT * FROM tenant_now)
  SELECT t.tenant, t.virtual_s, t.mean_s, t.weight,
      CASE WHEN t.max_running = 0 THEN 9223372036854775807 ELSE greatest(t.max_running -
        (SELECT count(*) FROM claim c WHERE c.tenant = t.tenant AND c.has_slot), 0) END
    FROM tenants t
    WHERE EXISTS (SELECT 1 FROM job_queue q
                    WHERE q.tenant = t.tenant AND q.state = 1 AND q.pinned_to IS NULL
                      AND q.rank_us >= coalesce((SELECT f.rank_us FROM queue_floor f
                        WHERE f.tenant = t.tenant AND f.until_us >
                          (extract(epoch FROM statement_timestamp()) * 1000000)::bigint),
                        -9223372036854775808) OFFSET 0)
  UNION ALL
  SELECT NULL, coalesce(max(t.start_s), 0), 0, 0,
      (SELECT count(*) FROM (SELECT 1 FROM job_queue q
         WHERE q.pinned_to = p_owner AND q.pinned_to IS NOT NULL AND q.state = 1 LIMIT 1) AS one)
    FROM tenants t;
END $$;

-- Claims up to p_jobs jobs of a tenant, or with none those that are pinned to the owner, but none of
-- p_without, which a newer node wrote so that this one cannot read them. A job starts
-- where the tenant's clock, and at least p_floor_s, is at most p_until_s. A row for each claim, then
-- one without, which says how the tenant stands now; has_more: it may have more jobs. No row: the
-- node takes no work, or the tenant has no policy yet.
CREATE OR REPLACE FUNCTION claim_jobs(p_incarnation bigint, p_owner text, p_tenant text,
                                      p_floor_s double precision, p_until_s double precision,
                                      p_jobs bigint, p_without text[] DEFAULT '{}')
RETURNS TABLE (claim_id bigint, claimed_job text, clock_s double precision,
               mean_s double precision, weight double precision, room bigint, has_more boolean)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off
SET enable_mergejoin = off AS $$
DECLARE
  v_tenant tenant_now;
  v_job job_queue;
  v_run bigint;
  v_has_flight boolean;
  v_most bigint := p_jobs;
  v_found bigint := 0;
  v_taken bigint := 0;
BEGIN
  PERFORM 1 FROM node WHERE incarnation = p_incarnation AND state = 1;
  IF NOT FOUND THEN RETURN; END IF;
  IF p_tenant IS NOT NULL THEN
    -- Under its lock the bound and the clock are exact. A second statement reads them, since the
    -- first one knows only what was there before it waited.
    PERFORM 1 FROM tenant t WHERE t.tenant = p_tenant FOR UPDATE;
    SELECT * INTO v_tenant FROM tenant_now t WHERE t.tenant = p_tenant;
    IF NOT FOUND THEN RETURN; END IF;
    clock_s := greatest(v_tenant.virtual_s, p_floor_s);
    mean_s := v_tenant.mean_s;
    weight := v_tenant.weight;
    room := CASE WHEN v_tenant.max_running = 0 THEN 9223372036854775807
      ELSE greatest(v_tenant.max_running - (SELECT count(*) FROM claim c
        WHERE c.tenant = p_tenant AND c.has_slot), 0) END;
    v_most := least(p_jobs, room, CASE WHEN clock_s > p_until_s THEN 0 ELSE
      1 + floor(least((p_until_s - clock_s) * weight / greatest(mean_s, 0.001), 1000)) END);
  END IF;
  -- Equal jobs may start at several nodes at once: their keys are locked in order.
  FOR v_job IN
    SELECT * FROM
      (SELECT * FROM job_queue q WHERE q.tenant = p_tenant AND q.state = 1 AND q.pinned_to IS NULL
           AND q.rank_us >= floor_of(p_tenant) AND q.job_id <> ALL (p_without)
         ORDER BY q.rank_us, q.accept_order LIMIT v_most FOR UPDATE SKIP LOCKED) AS unpinned
    UNION ALL
    SELECT * FROM
      (SELECT * FROM job_queue q WHERE p_tenant IS NULL AND q.pinned_to = p_owner
           AND q.pinned_to IS NOT NULL AND q.state = 1 AND q.job_id <> ALL (p_without)
         ORDER BY q.accept_order LIMIT v_most FOR UPDATE SKIP LOCKED) AS pinned
    ORDER BY flight_key NULLS FIRST, accept_order
  LOOP
    v_found := v_found + 1;
    claim_id := nextval('claim_number');
    v_has_flight := false;
    IF v_job.flight_key IS NOT NULL THEN
      -- An equal one of this loop may have taken it along.
      PERFORM 1 FROM job_queue q WHERE q.job_id = v_job.job_id AND q.state + 0 = 1;
      CONTINUE WHEN NOT FOUND;
      INSERT INTO flight AS f (flight_key, claim_id)
        VALUES (v_job.flight_key, claim_jobs.claim_id) ON CONFLICT DO NOTHING;
      v_has_flight := FOUND;
      IF NOT v_has_flight AND v_job.pinned_to IS NULL THEN
        -- The lock makes the end of that run wait: nobody follows a run that has ended.
        SELECT f.claim_id INTO v_run FROM flight f WHERE f.flight_key = v_job.flight_key FOR SHARE;
        IF FOUND THEN PERFORM follow_flight(v_job.flight_key, v_run); END IF;
        CONTINUE;
      END IF;
    END IF;
    -- A pinned job is charged when it ends, since it does not wait for its tenant's turn.
    INSERT INTO claim (id, incarnation, owner, job_id, tenant, flight_key, charged_s)
      VALUES (claim_id, p_incarnation, p_owner, v_job.job_id, v_job.tenant,
              CASE WHEN v_has_flight THEN v_job.flight_key END, coalesce(v_tenant.mean_s, 0));
    UPDATE job_queue SET state = 3, held_by = claim_id WHERE job_id = v_job.job_id;
    IF v_has_flight THEN PERFORM follow_flight(v_job.flight_key, claim_id); END IF;
    v_taken := v_taken + 1;
    claimed_job := v_job.job_id;
    RETURN NEXT;
  END LOOP;
  claim_id := NULL;
  claimed_job := NULL;
  has_more := v_found = v_most;
  IF v_taken > 0 AND p_tenant IS NOT NULL THEN
    clock_s := clock_s + v_taken * mean_s / weight;
    room := room - v_taken;
    UPDATE tenant_clock c SET version = c.version + 1, virtual_s = clock_s,
        start_s = greatest(c.start_s, p_floor_s)
      WHERE c.tenant = p_tenant AND c.version = v_tenant.version;
  END IF;
  RETURN NEXT;
END $$;

-- How nodes of version 6 and before claim: one job, of the tenant with the least clock; with
-- p_pinned_only one that is for the node alone. No row: there is none. A row without a claim: ask
-- again.
CREATE OR REPLACE FUNCTION claim_next(p_incarnation bigint, p_owner text, p_pinned_only boolean)
RETURNS TABLE (claim_id bigint, claimed_job text) LANGUAGE plpgsql AS $$
DECLARE
  v_floor double precision;
  v_tenant text;
BEGIN
  RETURN QUERY SELECT c.claim_id, c.claimed_job
    FROM claim_jobs(p_incarnation, p_owner, NULL, 0, 0, 1) AS c WHERE c.claim_id IS NOT NULL;
  IF FOUND OR p_pinned_only THEN RETURN; END IF;
  SELECT r.tenant,
      greatest(r.clock_s, max(r.clock_s) FILTER (WHERE r.tenant IS NULL) OVER ())
    INTO v_tenant, v_floor FROM read_claimable(p_owner) AS r
    ORDER BY r.tenant IS NULL OR r.room = 0, r.clock_s LIMIT 1;
  IF v_tenant IS NULL THEN RETURN; END IF;
  RETURN QUERY SELECT c.claim_id, c.claimed_job
    FROM claim_jobs(p_incarnation, p_owner, v_tenant, v_floor, 'infinity', 1) AS c
    ORDER BY c.claim_id NULLS LAST LIMIT 1;
END $$;

CREATE OR REPLACE FUNCTION start_claim(p_claim bigint, p_incarnation bigint, p_fence bigint,
                                       p_now bigint)
RETURNS boolean LANGUAGE plpgsql
SET enable_seqscan = off AS $$
DECLARE
  v_claim claim;
BEGIN
  UPDATE claim c SET fence = p_fence, started_us = p_now
    WHERE c.id = p_claim AND c.incarnation + 0 = p_incarnation
      AND EXISTS (SELECT 1 FROM node n WHERE n.incarnation = p_incarnation AND n.state <> 3)
    RETURNING c.* INTO v_claim;
  IF NOT FOUND THEN RETURN false; END IF;
  UPDATE job_queue SET state = 1, follows = NULL WHERE follows = p_claim AND state + 0 = 4;
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
  SELECT * INTO v_claim FROM claim c WHERE c.id = p_claim AND c.incarnation + 0 = p_incarnation
    FOR UPDATE;
  IF NOT FOUND THEN RETURN; END IF;
  IF v_claim.flight_key IS NOT NULL THEN PERFORM follow_flight(v_claim.flight_key, p_claim); END IF;
  UPDATE job_queue q SET state = 4, follows = p_claim, held_by = NULL
    WHERE q.job_id = v_claim.job_id AND q.held_by = p_claim;
  LOOP
    SELECT * INTO v_next FROM job_queue q WHERE q.follows = p_claim AND q.state + 0 = 2
      ORDER BY q.accept_order LIMIT 1 FOR UPDATE;
    EXIT WHEN FOUND;
    -- The eldest may have ended while its lock was waited for.
    PERFORM 1 FROM job_queue q WHERE q.follows = p_claim AND q.state + 0 = 2;
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
  SELECT * INTO v_claim FROM claim c WHERE c.id = p_claim AND c.incarnation + 0 = p_incarnation
    FOR UPDATE;
  IF NOT FOUND THEN RETURN; END IF;
  IF v_claim.flight_key IS NOT NULL THEN
    PERFORM follow_flight(v_claim.flight_key, p_claim);
    DELETE FROM flight f WHERE f.flight_key = v_claim.flight_key AND f.claim_id = p_claim;
  END IF;
  UPDATE claim c SET has_slot = false, flight_key = NULL WHERE c.id = p_claim;
  RETURN QUERY SELECT NULL::text, v_claim.tenant, used_by(v_claim, p_now), v_claim.charged_s;
  RETURN QUERY SELECT q.job_id, NULL::text, NULL::double precision, NULL::double precision
    FROM job_queue q WHERE q.follows = p_claim AND q.state + 0 = 2 ORDER BY q.accept_order;
END $$;

-- Whoever calls it holds the claim's lock.
CREATE OR REPLACE FUNCTION drop_claim(p_claim claim, p_returns boolean)
RETURNS void LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
  DELETE FROM flight f WHERE f.flight_key = p_claim.flight_key AND f.claim_id = p_claim.id;
  PERFORM 1 FROM job_queue q WHERE q.job_id = ANY (
      ARRAY(SELECT f.job_id FROM job_queue f WHERE f.follows = p_claim.id) || p_claim.job_id)
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
  SELECT * INTO v_claim FROM claim c WHERE c.id = p_claim AND c.incarnation + 0 = p_incarnation
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
  v_left bigint[];
  v_claim claim;
  v_runs boolean;
BEGIN
  -- By the nodes that are dead: as a question about each claim it would step over all that an old
  -- snapshot keeps of ended ones.
  v_left := ARRAY(
    SELECT c.id FROM claim c WHERE p_own AND c.owner = p_owner
    UNION ALL
    SELECT c.id FROM node n CROSS JOIN LATERAL
        (SELECT k.id FROM claim k WHERE k.incarnation = n.incarnation OFFSET 0) AS c
      WHERE NOT p_own AND n.state = 3
    UNION ALL
    SELECT c.id FROM claim c WHERE NOT p_own AND c.held_until_us <= p_lapsed_us);
  FOR v_claim IN
    SELECT c.* FROM claim c WHERE c.id = ANY (v_left) AND c.incarnation <> p_incarnation
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
  SELECT * INTO v_job FROM job_queue q WHERE q.job_id = p_job AND q.state + 0 = 1 FOR UPDATE;
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

-- Microseconds that ended runs used beyond what their starts were charged, of several tenants, how
-- many runs were no mere starts, and what those used.
CREATE OR REPLACE FUNCTION charge_tenants(p_tenant text[], p_excess_us bigint[], p_runs bigint[],
                                          p_used_us bigint[])
RETURNS void LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
  v_use record;
  v_tenant tenant_now;
BEGIN
  FOR v_use IN
    SELECT u.* FROM unnest(p_tenant, p_excess_us, p_runs, p_used_us)
        AS u(tenant, excess_us, runs, used_us) ORDER BY u.tenant COLLATE "C"
  LOOP
    PERFORM 1 FROM tenant t WHERE t.tenant = v_use.tenant FOR UPDATE;
    SELECT * INTO v_tenant FROM tenant_now t WHERE t.tenant = v_use.tenant;
    -- One clock at a time: as a join it may step over old versions.
    UPDATE tenant_clock c SET version = c.version + 1,
        virtual_s = c.virtual_s + v_use.excess_us / 1e6::double precision / v_tenant.weight,
        mean_s = CASE WHEN v_use.runs = 0 THEN c.mean_s ELSE c.mean_s +
          (1 - 0.9 ^ least(v_use.runs, 100)) *
          (v_use.used_us / 1e6::double precision / v_use.runs - c.mean_s) END
      WHERE c.tenant = v_tenant.tenant AND c.version = v_tenant.version;
  END LOOP;
END $$;

-- The same of one tenant, for nodes of version 6 and before.
CREATE OR REPLACE FUNCTION charge_tenant(p_tenant text, p_excess_s double precision,
                                         p_runs bigint, p_used_s double precision)
RETURNS void LANGUAGE sql AS $$
  SELECT charge_tenants(ARRAY[p_tenant], ARRAY[(p_excess_s * 1e6)::bigint], ARRAY[p_runs],
                        ARRAY[(p_used_s * 1e6)::bigint])
$$;

-- NULL: the tenant has no room; else the number of the place.
CREATE OR REPLACE FUNCTION reserve_place(p_tenant text, p_incarnation bigint, p_limit bigint)
RETURNS TABLE (place bigint, waiting bigint) LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off AS $$
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

-- A row for each of the jobs that is here. place: 1 in order, 2 claimed, 3 follows a run, 4 runs.
-- `ahead` is exact up to 1000; where more are before it, `share` says which part of its tenant's
-- waiting jobs are, as if these had come evenly. What one job has counted is not counted again for
-- the next ones, so many jobs take little more than one.
CREATE OR REPLACE FUNCTION look_at_jobs(p_jobs text[])
RETURNS TABLE (job text, place integer, ahead bigint, share double precision, limited boolean,
               running bigint, slots bigint, mean_s double precision, of_tenant text)
LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off
SET enable_mergejoin = off SET enable_sort = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  v_most constant bigint := 1000;
  v_job job_queue;
  v_tenant tenant_now;
  v_is_limited boolean;
  v_floor bigint;
  v_first bigint;
  v_last bigint;
  -- Of the tenant: so many wait before this place.
  v_before bigint;
  v_rank bigint;
  v_order bigint;
  -- All tenants by their clocks. Of the jobs of one that wait so many were asked for and found.
  v_all tenant_now[];
  v_asked bigint[];
  v_found bigint[];
  v_start double precision;
  v_limit bigint;
BEGIN
  SELECT count(*) INTO running FROM claim c WHERE c.has_slot;
  SELECT greatest(coalesce(sum(n.slots), 0), 1) INTO slots FROM node n WHERE n.state = 1;
  FOR v_job IN SELECT q.* FROM job_queue q WHERE q.job_id = ANY (p_jobs)
      ORDER BY q.tenant, q.rank_us, q.accept_order
  LOOP
    job := v_job.job_id;
    ahead := 0;
    share := NULL;
    limited := false;
    IF v_job.tenant IS DISTINCT FROM of_tenant THEN
      of_tenant := v_job.tenant;
      SELECT * INTO v_tenant FROM tenant_now t WHERE t.tenant = of_tenant;
      mean_s := coalesce(v_tenant.mean_s, 2);
      v_is_limited := v_tenant.max_running > 0 AND v_tenant.max_running <=
        (SELECT count(*) FROM claim c WHERE c.tenant = of_tenant AND c.has_slot);
      v_floor := floor_of(of_tenant);
      v_before := 0;
      v_rank := v_floor;
      v_order := -9223372036854775808;
      v_first := NULL;
    END IF;
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
      limited := v_is_limited;
      IF v_job.rank_us >= v_floor THEN
        v_before := v_before + (SELECT count(*) FROM (SELECT 1 FROM job_queue q
          WHERE q.tenant = of_tenant AND q.state = 1 AND q.pinned_to IS NULL
            AND (q.rank_us, q.accept_order) >= (v_rank, v_order)
            AND (q.rank_us, q.accept_order) < (v_job.rank_us, v_job.accept_order)
          LIMIT v_most - v_before) AS part);
        v_rank := v_job.rank_us;
        v_order := v_job.accept_order;
        ahead := v_before;
      END IF;
      -- Jobs of others start meanwhile, as if each took its tenant's mean time.
      v_start := v_tenant.virtual_s + ahead * v_tenant.mean_s / v_tenant.weight;
      IF v_all IS NULL AND ahead < v_most THEN
        SELECT array_agg(t ORDER BY t.virtual_s) INTO v_all FROM tenant_now t;
        v_asked := array_fill(0::bigint, ARRAY[cardinality(v_all)]);
        v_found := v_asked;
      END IF;
      FOR i IN 1 .. coalesce(cardinality(v_all), 0) LOOP
        EXIT WHEN ahead >= v_most OR coalesce(v_all[i].virtual_s >= v_start, true);
        CONTINUE WHEN v_all[i].tenant = of_tenant;
        v_limit := least(ceil((v_start - v_all[i].virtual_s) * v_all[i].weight / v_all[i].mean_s),
                         v_most - ahead);
        IF v_asked[i] < v_limit AND v_asked[i] = v_found[i] THEN
          -- More than is needed now: the next job may need more.
          v_asked[i] := least(greatest(v_limit, 2 * v_asked[i]), v_most);
          v_found[i] := (SELECT count(*) FROM (SELECT 1 FROM job_queue q
            WHERE q.tenant = v_all[i].tenant AND q.state = 1 AND q.pinned_to IS NULL
              AND q.rank_us >= floor_of(v_all[i].tenant) LIMIT v_asked[i]) AS part);
        END IF;
        ahead := ahead + least(v_found[i], v_limit);
      END LOOP;
      IF ahead >= v_most THEN
        IF v_first IS NULL THEN
          SELECT q.rank_us INTO v_first FROM job_queue q
            WHERE q.tenant = of_tenant AND q.state = 1 AND q.pinned_to IS NULL
              AND q.rank_us >= v_floor
            ORDER BY q.rank_us, q.accept_order LIMIT 1;
          SELECT q.rank_us INTO v_last FROM job_queue q
            WHERE q.tenant = of_tenant AND q.state = 1 AND q.pinned_to IS NULL
            ORDER BY q.rank_us DESC, q.accept_order DESC LIMIT 1;
        END IF;
        share := CASE WHEN v_last > v_first
          THEN (v_job.rank_us - v_first)::double precision / (v_last - v_first) ELSE 1 END;
      END IF;
    END IF;
    RETURN NEXT;
  END LOOP;
END $$;

-- The same of one job, for nodes of version 9 and before.
CREATE OR REPLACE FUNCTION look_at_job(p_job text)
RETURNS TABLE (place integer, ahead bigint, share double precision, limited boolean,
               running bigint, slots bigint, mean_s double precision, of_tenant text)
LANGUAGE sql STABLE AS $$
  SELECT l.place, l.ahead, l.share, l.limited, l.running, l.slots, l.mean_s, l.of_tenant
    FROM look_at_jobs(ARRAY[p_job]) AS l
$$;
