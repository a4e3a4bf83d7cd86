package main

import (
	"cmp"

	"github.com/spf13/cobra"
)

const resumable = "; the same command goes on from there, and changes nothing of what is done"

// retried maps commands that change many models to the end of their error if Redis stays away. They wait for a Redis that stops answering. Empty:
// the command itself says how to go on.
var retried = map[string]string{
	"refreshd model put": resumable, "refreshd model import": resumable, "refreshd model run": "", "refreshd model rm": "", "refreshd model enable": "",
	"refreshd model disable": "", "refreshd failures run": "", "refreshd apply": resumable, "refreshd level": resumable, "refreshd hold": "",
	"refreshd policy put": resumable, "refreshd policy rm": resumable, "refreshd calendar put": resumable, "refreshd calendar rm": resumable,
}

func documentRetry(of *cobra.Command) {
	if _, is := retried[of.CommandPath()]; is {
		of.Long = cmp.Or(of.Long, of.Short+".") + `

A Redis that stops answering is asked again for two minutes, and nothing is done twice. After that the command says how
much is done, and how to go on. One that does not answer at the beginning is told at once.`
	}
	for _, command := range of.Commands() {
		documentRetry(command)
	}
}
