package lease

// Renewed is how many leases of the process are renewed.
func Renewed() int {
	process.mu.Lock()
	defer process.mu.Unlock()
	return process.leases
}
