// Package delegated shows, by its tests, what callers of package delegate are told, whatever
// befalls a request of any kind that it sends, and whatever others do to the item meanwhile.
package delegated
