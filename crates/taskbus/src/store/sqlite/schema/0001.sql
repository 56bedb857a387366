-- What the store knows about itself: its id, and the checksum of each schema step.
CREATE TABLE meta (
  key   TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE lists (
  id           INTEGER PRIMARY KEY,
  name         TEXT NOT NULL UNIQUE,
  policy       TEXT NOT NULL,
  max_reclaims INTEGER NOT NULL,
  created_at   INTEGER NOT NULL
) STRICT;

-- Row 0 is the whole store, every other row the list of that id. The seq of row 0 is where ids come from, so that
-- none is reused, whatever is purged. In row 0 only count min_reader: the oldest schema that may still open this file;
-- epoch: how often the store was put back to an earlier state, from 1 on; head: the link of the newest revision; seal: a
-- hash over seq, epoch and head; clock: what the store's time goes by during this boot of the machine. ords is the sum of a mark for each live task and its place in the order of dependencies.
CREATE TABLE counters (
  id          INTEGER PRIMARY KEY,
  seq         INTEGER NOT NULL DEFAULT 0,
  min_reader  INTEGER NOT NULL DEFAULT 0,
  ready       INTEGER NOT NULL DEFAULT 0,
  blocked     INTEGER NOT NULL DEFAULT 0,
  parked      INTEGER NOT NULL DEFAULT 0,
  deferred    INTEGER NOT NULL DEFAULT 0,
  in_progress INTEGER NOT NULL DEFAULT 0,
  completed   INTEGER NOT NULL DEFAULT 0,
  ords        INTEGER NOT NULL DEFAULT 0,
  epoch       INTEGER NOT NULL DEFAULT 1,
  head        BLOB,
  seal        BLOB,
  clock       BLOB
) STRICT;
INSERT INTO counters (id, min_reader) VALUES (0, 1);

-- Every identity ever seen; registered is 1 once it had a session.
CREATE TABLE names (
  id         INTEGER PRIMARY KEY,
  name       TEXT NOT NULL UNIQUE,
  registered INTEGER NOT NULL
) STRICT;

CREATE TABLE sessions (
  name          INTEGER PRIMARY KEY,
  token         TEXT NOT NULL,
  alive_until   INTEGER NOT NULL,
  registered_at INTEGER NOT NULL,
  context       TEXT NOT NULL,
  client        TEXT NOT NULL,
  pid           INTEGER NOT NULL
) STRICT;
CREATE INDEX sessions_by_token ON sessions (token);
CREATE INDEX sessions_by_end ON sessions (alive_until);

-- Every revision of every task, in the order of the whole store; content is the task as JSON and the truth.
-- previous is the seq of the task's revision before, 0 for the first: a history is walked along it. link is a hash over
-- the link of the revision before, of whatever task, and all that stands in this one. sum is two short sums: over what
-- is read as the task, and over the rest.
CREATE TABLE messages (
  seq        INTEGER PRIMARY KEY,
  list       INTEGER NOT NULL,
  memory_id  INTEGER NOT NULL,
  revision   INTEGER NOT NULL,
  previous   INTEGER NOT NULL,
  type       TEXT NOT NULL,
  sender     TEXT,
  context    TEXT NOT NULL,
  client     TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  note       TEXT,
  link       BLOB NOT NULL,
  sum        INTEGER NOT NULL,
  content    TEXT NOT NULL
) STRICT;

-- Revisions that went with their list: of each run of them the last, so that whoever follows the links can walk on.
CREATE TABLE removed (
  seq  INTEGER PRIMARY KEY,
  link BLOB NOT NULL
) STRICT;

-- One row for each live task, derived from its newest revision in the same transaction.
CREATE TABLE tasks (
  id           INTEGER PRIMARY KEY,
  list         INTEGER NOT NULL,
  seq          INTEGER NOT NULL,
  condition    INTEGER NOT NULL, -- 0 ready, 1 ready for its assignee, 2 blocked, 3 parked, 4 deferred, 5 in progress, 6 completed
  done         INTEGER NOT NULL, -- 1 when completed
  owner        INTEGER NOT NULL, -- in names; 0 for none
  parent       INTEGER NOT NULL, -- the effective parent; 0 for a root
  lost_parent  INTEGER,          -- the stored parent when that is not live
  rank         TEXT NOT NULL,
  path         BLOB NOT NULL,    -- its bytes are the depth-first order
  depth        INTEGER NOT NULL,
  lease        INTEGER NOT NULL, -- its end; the largest integer for none
  not_before   INTEGER,
  parked       INTEGER NOT NULL,
  open         TEXT NOT NULL,    -- the open blockers, in the order of blocked_by
  ord          INTEGER NOT NULL, -- larger than that of every live blocker
  has_blockers INTEGER NOT NULL,
  has_paths    INTEGER NOT NULL,
  has_details  INTEGER NOT NULL,
  labels       TEXT NOT NULL,
  subject      TEXT NOT NULL,
  sum          INTEGER NOT NULL  -- over what a page shows and the document alone decides
) STRICT;
CREATE INDEX tasks_tree ON tasks (list, path, depth);
CREATE INDEX tasks_children ON tasks (list, parent, rank);
CREATE INDEX tasks_open_children ON tasks (parent, rank) WHERE done = 0 AND parent <> 0;
CREATE INDEX tasks_orphans ON tasks (lost_parent) WHERE lost_parent IS NOT NULL;
CREATE INDEX tasks_pending ON tasks (list, condition, path) WHERE condition <= 4;
CREATE INDEX tasks_assigned ON tasks (list, owner, condition, path) WHERE condition <= 4 AND owner <> 0;
CREATE INDEX tasks_active ON tasks (list, owner, lease) WHERE condition = 5;
CREATE INDEX tasks_done ON tasks (list, owner, path) WHERE done = 1;
CREATE INDEX tasks_timed ON tasks (list, condition, not_before) WHERE not_before IS NOT NULL;
CREATE INDEX tasks_with_paths ON tasks (list, condition) WHERE has_paths = 1;

-- Who waits for whom: one row for each blocker that a live task names, whether that exists or not.
CREATE TABLE edges (
  blocker INTEGER NOT NULL,
  task    INTEGER NOT NULL,
  PRIMARY KEY (blocker, task)
) STRICT, WITHOUT ROWID;
CREATE INDEX edges_by_task ON edges (task);

CREATE TABLE task_labels (
  list  INTEGER NOT NULL,
  label TEXT NOT NULL,
  task  INTEGER NOT NULL,
  PRIMARY KEY (list, label, task)
) STRICT, WITHOUT ROWID;

-- Deleted tasks; seq is the revision that deleted it.
CREATE TABLE tombstones (
  id   INTEGER PRIMARY KEY,
  list INTEGER NOT NULL,
  seq  INTEGER NOT NULL
) STRICT;

-- Rows are as long as an answer; with numbers of their own they go behind each other and need no page more.
CREATE TABLE receipts (
  id          INTEGER PRIMARY KEY,
  sender      TEXT NOT NULL,
  key         TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  answer      TEXT NOT NULL,
  expires_at  INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX receipts_by_key ON receipts (sender, key);
CREATE INDEX receipts_by_end ON receipts (expires_at);
