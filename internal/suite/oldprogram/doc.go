// Package oldprogram shows, by its tests, that a program of an earlier state works beside
// one of today on one table: stored rows mean the same to both, or it refuses them.
package oldprogram
