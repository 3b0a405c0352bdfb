-- From version 2 to version 3: a write of the store puts the fence of a lease on the board.
DROP FUNCTION IF EXISTS apply_batch(
  bigint, bigint, bigint, text[], text[], bigint[], bigint[], bigint[], bigint[], bigint[], text[],
  bytea[], bytea[], bigint[], bigint[], text[], text[], bigint[], text[], bigint[], bytea[], text[],
  text[]);
