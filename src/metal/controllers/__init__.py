"""The controllers: one package a kind, each with its reconciler, watches, scope and settings.

Packages of kinds import `shared` and the layers below. Start reading in `server`, whose states are the life of a
machine.
"""
