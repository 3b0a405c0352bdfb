-- Functions of the audit (pg_audit.h). Each is one transaction.

-- Entries of one process, the first with the number p_first. A repeated call adds nothing.
CREATE OR REPLACE FUNCTION write_audit(
  p_life bigint, p_first bigint, p_times bigint[], p_left_out bigint[], p_nodes text[],
  p_actions text[], p_identities text[], p_tenants text[], p_peers text[], p_objects text[],
  p_results text[], p_details text[])
RETURNS void LANGUAGE sql AS $$
  INSERT INTO audit (life, number, at_us, left_out, node, action, identity, tenant, peer, object,
                     result, detail)
    SELECT p_life, p_first + e.i - 1, e.at_us, e.left_out, e.node, e.action, e.identity, e.tenant,
        e.peer, e.object, e.result, e.detail
      FROM unnest(p_times, p_left_out, p_nodes, p_actions, p_identities, p_tenants, p_peers,
                  p_objects, p_results, p_details) WITH ORDINALITY
        AS e (at_us, left_out, node, action, identity, tenant, peer, object, result, detail, i)
      ORDER BY e.i
    ON CONFLICT (life, number) DO NOTHING
$$;

-- The p_limit newest entries of a time that come before a place, wanted or not. p_wanted: node,
-- action, identity, tenant, object, result; an empty text takes any.
CREATE OR REPLACE FUNCTION find_audit(p_from bigint, p_to bigint, p_before_us bigint,
                                      p_before_id bigint, p_limit bigint, p_wanted text[])
RETURNS TABLE (at_us bigint, id bigint, is_wanted boolean, left_out bigint, node text, action text,
               identity text, tenant text, peer text, object text, result text, detail text)
LANGUAGE sql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off AS $$
  SELECT a.at_us, a.id,
      p_wanted[1] IN ('', a.node) AND p_wanted[2] IN ('', a.action)
        AND p_wanted[3] IN ('', a.identity) AND p_wanted[4] IN ('', a.tenant)
        AND p_wanted[5] IN ('', a.object) AND p_wanted[6] IN ('', a.result),
      a.left_out, a.node, a.action, a.identity, a.tenant, a.peer, a.object, a.result, a.detail
    FROM audit a
    WHERE a.at_us >= p_from AND a.at_us < p_to AND (a.at_us, a.id) < (p_before_us, p_before_id)
    ORDER BY a.at_us DESC, a.id DESC LIMIT p_limit
$$;

-- Removes the oldest entries, up to p_limit for either reason: those older than p_days, and those
-- before the newest p_entries. Ids have few gaps, so they count.
CREATE OR REPLACE FUNCTION prune_audit(p_days bigint, p_entries bigint, p_limit bigint)
RETURNS bigint LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off AS $$
DECLARE
  v_newest bigint := (SELECT max(id) FROM audit);
  v_old bigint;
  v_many bigint;
BEGIN
  DELETE FROM audit WHERE id = ANY (ARRAY(
    SELECT a.id FROM audit a WHERE a.at_us < server_us() - p_days * 86400000000
      ORDER BY a.at_us, a.id LIMIT p_limit FOR UPDATE SKIP LOCKED));
  GET DIAGNOSTICS v_old = ROW_COUNT;
  DELETE FROM audit WHERE id = ANY (ARRAY(
    SELECT a.id FROM audit a WHERE a.id <= v_newest - p_entries
      ORDER BY a.id LIMIT p_limit FOR UPDATE SKIP LOCKED));
  GET DIAGNOSTICS v_many = ROW_COUNT;
  RETURN greatest(v_old, v_many);
END $$;
