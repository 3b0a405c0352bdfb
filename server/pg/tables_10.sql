-- From version 9 to version 10: the clocks of tenants, which each claim moves, in a table of their own,
-- so that the row that a claim locks does not change. Older nodes can use it: they make tenants, and
-- functions do the rest.

-- A floor that has ended is not read. First, as claims take the locks: tenant is written last.
ALTER TABLE queue_floor DROP CONSTRAINT queue_floor_pkey;
ALTER TABLE queue_floor ADD PRIMARY KEY (tenant, until_us);

-- version: one more with each change. An old snapshot keeps every version of a row; by this key the
-- newest is found first, and no other is read.
CREATE TABLE tenant_clock (
  tenant text COLLATE "C",
  version bigint,
  virtual_s double precision NOT NULL,
  start_s double precision NOT NULL,
  mean_s double precision NOT NULL DEFAULT 2,
  PRIMARY KEY (tenant, version)
);

-- The lock of a tenant's row in table tenant guards its clock, too. Statements that read it turn
-- bitmap scans off: a sort of all versions looks cheap where statistics know of one row.
CREATE VIEW tenant_now AS
  SELECT t.tenant, t.weight, t.max_running, c.version, c.virtual_s, c.start_s, c.mean_s
    FROM tenant t CROSS JOIN LATERAL
      (SELECT * FROM tenant_clock k WHERE k.tenant = t.tenant ORDER BY k.version DESC LIMIT 1) AS c;

-- A new tenant brings no credit: its clock begins at the greatest floor of any claim.
CREATE FUNCTION begin_clock()
RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO tenant_clock (tenant, version, virtual_s, start_s)
    SELECT NEW.tenant, 1, coalesce(max(t.start_s), 0), 0 FROM tenant_now t;
  RETURN NULL;
END $$;
-- Its lock keeps tenants from coming between it and the copy.
CREATE TRIGGER clock_begins AFTER INSERT ON tenant FOR EACH ROW EXECUTE FUNCTION begin_clock();
INSERT INTO tenant_clock (tenant, version, virtual_s, start_s, mean_s)
  SELECT tenant, 1, virtual_s, start_s, mean_s FROM tenant;
-- Columns virtual_s, start_s and mean_s of tenant stay for nodes of version 9, which guess by them. A
-- later step drops them.
