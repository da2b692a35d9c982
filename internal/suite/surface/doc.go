// Package surface shows, by its tests, that nothing internal is in what users
// can see: no exported name of a public package mentions a type of ours that
// they could neither import nor name.
package surface
