-- The bus. It only adds: a version that knows nothing of it still keeps the lists.
ALTER TABLE sessions ADD COLUMN harness_pid INTEGER;
ALTER TABLE sessions ADD COLUMN harness_start INTEGER;

-- The revisions of one list in order, for those who are subscribed to it.
CREATE INDEX messages_by_list ON messages (list, seq);

-- Every channel that is no task list. The counts are kept with each change.
CREATE TABLE channels (
  id             INTEGER PRIMARY KEY,
  name           TEXT NOT NULL UNIQUE,
  kind           TEXT NOT NULL,
  open           INTEGER NOT NULL,           -- 1: ordinary and no inbox, what who follows tags hears of
  created_at     INTEGER NOT NULL,
  live           INTEGER NOT NULL DEFAULT 0,
  rows           INTEGER NOT NULL DEFAULT 0,
  latest_seq     INTEGER NOT NULL DEFAULT 0, -- of the newest message ever, kept or not
  last_activity  INTEGER,
  evicted_before INTEGER NOT NULL DEFAULT 0
) STRICT;

-- Every message that is no revision of a task. Numbers are those of `messages`: one sequence for both.
CREATE TABLE posts (
  seq        INTEGER PRIMARY KEY,
  channel    INTEGER NOT NULL,
  standing   INTEGER NOT NULL, -- 0 live, 1 only says that a memory was deleted, 2 buried
  ages       INTEGER NOT NULL, -- 1: of no memory that has to stay
  memory_id  INTEGER,
  revision   INTEGER,
  embedded   INTEGER NOT NULL DEFAULT 0, -- 1: there is a row in embeddings
  reply_to   INTEGER,
  created_at INTEGER NOT NULL,
  buried_at  INTEGER,
  sender     TEXT,
  type       TEXT NOT NULL,
  tags       TEXT NOT NULL,    -- with spaces between
  subject    TEXT,
  context    TEXT NOT NULL,
  client     TEXT NOT NULL,
  metadata   TEXT,             -- JSON
  sum        INTEGER NOT NULL, -- over all that a reader is told of it but its channel
  content    TEXT NOT NULL
) STRICT;
CREATE INDEX posts_by_channel ON posts (channel, seq);
CREATE INDEX posts_by_memory ON posts (memory_id, seq) WHERE memory_id IS NOT NULL;
CREATE INDEX posts_by_age ON posts (created_at, seq) WHERE ages = 1;
CREATE INDEX posts_buried ON posts (buried_at, seq) WHERE buried_at IS NOT NULL;
CREATE INDEX posts_bare ON posts (seq) WHERE embedded = 0 AND standing = 0 AND memory_id IS NOT NULL;

-- The tags of messages that are not buried.
CREATE TABLE message_tags (
  tag TEXT NOT NULL,
  seq INTEGER NOT NULL,
  PRIMARY KEY (tag, seq)
) STRICT, WITHOUT ROWID;

-- source is the name of a channel, or `tags/` for all that an identity follows by tags.
CREATE TABLE subscriptions (
  who           TEXT NOT NULL,
  source        TEXT NOT NULL,
  cursor        INTEGER NOT NULL,
  last_activity INTEGER NOT NULL,
  token         TEXT,
  pending_end   INTEGER,
  PRIMARY KEY (who, source)
) STRICT, WITHOUT ROWID;
CREATE INDEX subscriptions_by_source ON subscriptions (source, who);

-- patterns are in order, with commas between.
CREATE TABLE tag_sets (
  who       TEXT NOT NULL,
  patterns  TEXT NOT NULL,
  since_seq INTEGER NOT NULL,
  PRIMARY KEY (who, patterns)
) STRICT, WITHOUT ROWID;

-- When each memory was last read.
CREATE TABLE memory_reads (
  memory_id INTEGER PRIMARY KEY,
  read_at   INTEGER NOT NULL
) STRICT;
CREATE INDEX memory_reads_by_time ON memory_reads (read_at, memory_id);

-- Of a live message: its vector (32-bit floats, the lowest byte first), or why the model refused it.
CREATE TABLE embeddings (
  seq    INTEGER PRIMARY KEY,
  model  TEXT NOT NULL,
  failed INTEGER NOT NULL, -- 1: error says why
  at     INTEGER,
  error  TEXT,
  vector BLOB
) STRICT;
CREATE INDEX embeddings_by_model ON embeddings (model, failed, seq);

CREATE TABLE notices (
  kind   TEXT PRIMARY KEY,
  text   TEXT NOT NULL,
  set_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- One row: who does the maintenance, and up to which number texts are indexed.
CREATE TABLE upkeep (
  id      INTEGER PRIMARY KEY,
  who     TEXT,
  until   INTEGER,
  indexed INTEGER NOT NULL
) STRICT;
INSERT INTO upkeep (id, indexed) VALUES (0, 0);

-- What a search looks at: folded words with spaces between, by the number of a message or the id of a task.
CREATE VIRTUAL TABLE texts USING fts5 (subject, rest, content = '', contentless_delete = 1, tokenize = 'ascii');
-- The same by word, for the doctor.
CREATE VIRTUAL TABLE text_words USING fts5vocab (texts, instance);
