"""The HTTP front of all listeners that machines can reach: routing, limits, deadlines and refused requests.

Services see a `Request` and return a `Response`, so that they run without sockets as well. Start with `server`.
"""
