-- One batch of messages in one of the partitions.
\set partition random(0, :partitions - 1)
SELECT restante_order_:partition.append_batch(:messages);
