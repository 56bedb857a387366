-- The deleted tasks of one list, by id.
CREATE INDEX tombstones_by_list ON tombstones (list, id);
