package policy

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode"

	"github.com/refreshd/refreshd/model/document"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/vm"
)

// Expression is a strategy written as a formula over the Occasion: k, reason, error_type, queue_depth and
// seconds_since_success. It returns a duration as text ("10m"), or seconds as a number, or false for no retry. It has no
// loops, no clock and no side effects.
type Expression struct {
	Text    string
	program *vm.Program
}

// occasionEnv is the Occasion as an expression sees it.
type occasionEnv struct {
	K            int     `expr:"k"`
	Reason       string  `expr:"reason"`
	ErrorType    string  `expr:"error_type"`
	QueueDepth   int     `expr:"queue_depth"`
	SinceSuccess float64 `expr:"seconds_since_success"`
}

// Bounds of an expression, which is evaluated at each failure of each model that uses it.
const (
	maxExpression      = 1000 // bytes
	maxExpressionNodes = 200
)

// expressionFunctions are the functions of the language that an expression may use: none that loops, and none that asks the clock.
var expressionFunctions = []string{"abs", "ceil", "float", "floor", "int", "len", "lower", "max", "min", "round", "string", "trim", "upper"}

// parseExpression compiles an expression. Every refusal is a *document.Error.
func parseExpression(text string) (*Expression, error) {
	if len(text) > maxExpression {
		return nil, document.Refuse("expr", fmt.Sprintf("at most %d bytes", maxExpression), fmt.Sprint(len(text)))
	}
	if strings.ContainsFunc(text, hidden) {
		return nil, document.Refuse("expr", `an expression without control characters; "\u001b" stands for one`,
			document.Found(text))
	}
	bounds := &expressionBounds{}
	options := []expr.Option{expr.Env(occasionEnv{}), expr.DisableAllBuiltins(), expr.MaxNodes(maxExpressionNodes), expr.Patch(bounds)}
	for _, name := range expressionFunctions {
		options = append(options, expr.EnableBuiltin(name))
	}
	program, err := expr.Compile(text, options...)
	if err == nil {
		err = bounds.err
	}
	if err != nil {
		reason, _, _ := strings.Cut(err.Error(), "\n")
		want := "an expression over k, reason, error_type, queue_depth and seconds_since_success"
		return nil, document.Refuse("expr", want, document.Found(text)+" ("+document.Shorten(reason, document.MaxText)+")")
	}
	return &Expression{strings.Clone(text), program}, nil
}

// hidden reports whether a character would harm a terminal or a document that shows it.
func hidden(r rune) bool {
	return unicode.IsControl(r) && !strings.ContainsRune("\t\r\n", r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
}

// expressionBounds refuses what could make a short expression do much work.
type expressionBounds struct{ err error }

// Visit is called for each node of an expression.
func (b *expressionBounds) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.BinaryNode:
		if n.Operator == ".." {
			b.err = errors.New("ranges are not allowed")
		}
		if n.Operator == "matches" {
			if _, constant := n.Right.(*ast.StringNode); !constant {
				b.err = errors.New("the pattern of matches must be a text in quotes")
			}
		}
	case *ast.BuiltinNode:
		if n.Map != nil || len(n.Arguments) > 0 && isPredicate(n.Arguments[len(n.Arguments)-1]) {
			b.err = errors.New("loops are not allowed")
		}
	}
}

func isPredicate(node ast.Node) bool {
	_, predicate := node.(*ast.PredicateNode)
	return predicate
}

// Delay evaluates the expression. Its error is a policy_error.
func (e *Expression) Delay(o Occasion) (time.Duration, bool, error) {
	result, err := expr.Run(e.program, occasionEnv{o.K, o.Reason, o.ErrorType, o.QueueDepth, o.SinceSuccess.Seconds()})
	if err != nil {
		reason, _, _ := strings.Cut(err.Error(), "\n")
		return 0, false, errors.New(reason)
	}
	switch value := result.(type) {
	case bool:
		if value {
			return 0, false, errors.New("expected a duration or false, found true")
		}
		return 0, false, nil
	case string:
		delay, err := parseDelay("expr", value)
		return delay, err == nil, err
	case int:
		return secondsDelay(float64(value))
	case float64:
		return secondsDelay(value)
	default:
		return 0, false, fmt.Errorf("expected a duration or false, found %T", result)
	}
}

func secondsDelay(seconds float64) (time.Duration, bool, error) {
	if !(seconds >= 0 && seconds <= document.MaxDuration.Seconds()) { // also when it is no number
		return 0, false, fmt.Errorf("expected 0 seconds to ten years, found %g", seconds)
	}
	return time.Duration(math.Round(seconds*1000)) * time.Millisecond, true, nil
}

// Count is Unlimited: an expression ends by returning false.
func (e *Expression) Count() int { return Unlimited }

func (e *Expression) document() any {
	return map[string]string{"expr": e.Text}
}

func parseExpressionField(fields map[string]any) (*Expression, error) {
	doc, err := document.ReadObject(fields, "expr")
	if err != nil {
		return nil, err
	}
	text, err := doc.Text("expr")
	if err != nil {
		return nil, err
	}
	return parseExpression(text)
}

// AsksQueueDepth reports whether a decision needs to know the length of the input list.
func (p *Policy) AsksQueueDepth() bool {
	expression, ok := p.Retries.(*Expression)
	return ok && strings.Contains(expression.Text, "queue_depth")
}
