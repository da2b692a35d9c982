// Package stored says what the library keeps on items and under which names, and reads
// it: locks, queues, ids of writes and of operations. What has such a name and another
// shape is somebody else's, and is refused ([Table.CheckShape]).
//
// It writes nothing, and judges nothing: package protocol does, which has the words.
package stored
