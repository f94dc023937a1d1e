//go:build !linux

package lockd

func bootClock() func() instant { return nil }
