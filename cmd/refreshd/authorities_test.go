package main

import (
	"crypto/x509"
	"os"
	"os/exec"
	"testing"
)

// TestTheProgramBringsAuthoritiesOfTLSAlong runs itself where the system has none, as in an image from scratch.
func TestTheProgramBringsAuthoritiesOfTLSAlong(t *testing.T) {
	const again = "AUTHORITIES_OF_THE_PROGRAM"
	if os.Getenv(again) != "" {
		if pool, err := x509.SystemCertPool(); err != nil || pool.Equal(x509.NewCertPool()) {
			t.Fatalf("expected authorities, found none: %v", err)
		}
		return
	}
	alone := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	alone.Env = append(os.Environ(), again+"=1", "SSL_CERT_FILE=/nonexistent", "SSL_CERT_DIR=/nonexistent")
	if told, err := alone.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, told)
	}
}
