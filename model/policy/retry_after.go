package policy

import "github.com/refreshd/refreshd/model/document"

// RetryAfterScope is what is held back until the time that a worker asks for with retry_after.
type RetryAfterScope string

const (
	// ScopeAuto is ScopeKey for the status 429 of HTTP when the policy has limits, else ScopeModel.
	ScopeAuto RetryAfterScope = ""
	// ScopeModel holds back the model that failed.
	ScopeModel RetryAfterScope = "model"
	// ScopeKey closes the keys of the model's limits too.
	ScopeKey RetryAfterScope = "key"
)

// scopeAuto is how a policy says ScopeAuto.
const scopeAuto = "auto"

// tooManyRequests is the error type of the status with which a server says that its clients ask too often.
const tooManyRequests = statusPrefix + "429"

// RetryAfterClosesKeys reports whether a failure of an error type, whose worker asks for a retry_after, closes the keys of the
// policy's limits until then.
func (p *Policy) RetryAfterClosesKeys(errorType string) bool {
	if p.RetryAfterScope == ScopeAuto {
		return len(p.Limits) > 0 && statusType(errorType) == tooManyRequests
	}
	return p.RetryAfterScope == ScopeKey
}

func (p *Policy) readRetryAfterScope(doc document.Object) error {
	scope, err := doc.OneOf("retry_after_scope", scopeAuto, scopeAuto, string(ScopeModel), string(ScopeKey))
	if p.RetryAfterScope = RetryAfterScope(scope); scope == scopeAuto {
		p.RetryAfterScope = ScopeAuto
	}
	return err
}
