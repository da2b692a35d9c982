// Package apply shows, by its tests, what becomes of changes that are written as
// expressions, of both strategies that have them.
package apply
