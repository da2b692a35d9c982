// Package fair tests what everything that waits in turn promises: the order of arrival, and
// what others lose by one who leaves, dies, or is not heard. What only one package promises
// of its queue is tested there.
package fair
